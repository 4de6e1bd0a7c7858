/**
 * Workers run workflows in the thread of the test: starting a thread for each Worker was half of the CPU time of `npm test`.
 * Such a Worker does not detect a workflow task that takes too long; the project `temporal` has the same tests in threads.
 */
process.env['TEMPORAL_DEBUG'] = '1';
