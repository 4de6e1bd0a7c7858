/** A CommonJS program, as Temporal's own samples are. */
const { runOne } = require('./runOne.cjs');

void runOne({
  ...require('@temporalio/client'),
  ...require('@temporalio/worker'),
  ...require('holdfast'),
  ...require('holdfast/contract'),
});
