/** Entry point of the worker process: `node worker/main.ts`, or `holdfast worker`. */
import { runWorkerProcess } from './process/run.ts';

process.exit(await runWorkerProcess());
