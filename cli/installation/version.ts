/** Implements `holdfast version`. */
import sdk from '@temporalio/client/package.json' with { type: 'json' };
import { omitUndefined } from '../../core/domain/omitUndefined.ts';
import { packageInfo } from '../../worker/process/packageInfo.ts';
import type { Output } from '../shared/output.ts';

/** Prints the versions of the command, the Temporal SDK and Node. */
export function printVersion(output: Output): void {
  const { version, commit } = packageInfo();
  const node = process.version.slice(1);
  output.result({ version, ...omitUndefined({ commit }), temporalSdk: sdk.version, node }, [
    `holdfast ${version}${commit === undefined ? '' : ` (${commit})`}`,
    `Temporal SDK ${sdk.version}, Node ${node}`,
  ]);
}
