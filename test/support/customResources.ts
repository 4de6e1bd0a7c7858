/** The definitions of custom resources that the chart can make objects of, as their projects publish them: out of their Go modules. */
import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { ComponentUnavailableError } from '../../tools/lab/lab.ts';
import { objectsOf, type Manifest } from './chart.ts';

const MODULES = [
  { module: 'github.com/prometheus-operator/prometheus-operator@v0.85.0', folder: 'example/prometheus-operator-crd', files: ['monitoring.coreos.com_servicemonitors.yaml', 'monitoring.coreos.com_prometheusrules.yaml'] },
  { module: 'github.com/kedacore/keda/v2@v2.18.1', folder: 'config/crd/bases', files: ['keda.sh_scaledobjects.yaml'] },
  { module: 'sigs.k8s.io/gateway-api@v1.4.0', folder: 'config/crd/standard', files: ['gateway.networking.k8s.io_httproutes.yaml'] },
];

/** @throws ComponentUnavailableError where Go or its modules cannot be had */
export async function customResourceDefinitions(): Promise<Manifest[]> {
  const PATH = [process.env['PATH'] ?? '', '/usr/local/go/bin'].join(delimiter);
  const perModule = MODULES.map(async ({ module, folder, files }) => {
    const { stdout } = await promisify(execFile)('go', ['mod', 'download', '-json', module], { env: { ...process.env, GOFLAGS: '', PATH } }).catch((error: unknown) => {
      throw new ComponentUnavailableError('kubernetes', `${module} cannot be had: install Go >= 1.25`, error);
    });
    const { Dir } = JSON.parse(stdout) as { Dir: string };
    return await Promise.all(files.map(async (file) => objectsOf(await readFile(join(Dir, folder, file), 'utf8'))));
  });
  return (await Promise.all(perModule)).flat(2);
}
