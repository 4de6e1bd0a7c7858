/** Can runners be made where the settings say? */
import { accessSync, constants, mkdirSync } from 'node:fs';
import { oneLine, type HoldfastConfig } from './config.ts';
import type { Finding } from './finding.ts';

export async function checkCompute({ compute }: HoldfastConfig): Promise<Finding[]> {
  return compute.kind === 'process' ? [checkStateDir(compute.stateDir)] : [];
}

function checkStateDir(stateDir: string): Finding {
  try {
    mkdirSync(stateDir, { recursive: true, mode: 0o700 });
    accessSync(stateDir, constants.R_OK | constants.W_OK | constants.X_OK);
    return { level: 'ok', what: `state folder ${stateDir}` };
  } catch (error) {
    return { level: 'error', what: `HOLDFAST_STATE_DIR: the state folder ${stateDir} cannot be used (${oneLine(error)})`, fix: 'set HOLDFAST_STATE_DIR to a folder that the worker may write to' };
  }
}
