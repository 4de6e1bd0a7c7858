/**
 * Workers run workflows in the thread of the test: starting a thread for each Worker was half of
 * the CPU time of `npm test`. Such a Worker does not detect a workflow task that takes too long.
 * The project `temporal` runs the same tests with threads.
 */
process.env['TEMPORAL_DEBUG'] = '1';
