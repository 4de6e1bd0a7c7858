import { down } from '../../tools/lab/lab.ts';
import {
  arcLabFolder,
  otherClusterFolder,
  outagesLabFolder,
  restartsLabFolder,
  testLabFolder,
} from './labFolder.ts';

/**
 * Stops what the tests of this run have started and deletes its data, unless HOLDFAST_LAB_KEEP=1.
 */
export default async function globalTeardown(): Promise<void> {
  if (process.env['HOLDFAST_LAB_KEEP'] === '1') return;
  await Promise.all(
    [
      testLabFolder(),
      testLabFolder('kwok'),
      otherClusterFolder(),
      restartsLabFolder(),
      outagesLabFolder(),
      arcLabFolder(),
    ].map((stateDir) => down({ stateDir, purge: true })),
  );
}
