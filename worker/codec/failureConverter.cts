/**
 * Puts the messages and stack traces of failures into a payload, which the codec encrypts. Plain CommonJS, because the SDK takes a path: it
 * require()s the file in a worker, and bundles it into the workflows.
 */
const { DefaultFailureConverter } = require('@temporalio/common');

exports.failureConverter = new DefaultFailureConverter({ encodeCommonAttributes: true });
