/**
 * The custom resource definitions of the objects that the chart can create, from the Go modules of
 * their projects.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { objectsOf, type Manifest } from './chart.ts';
import { goModuleFolder } from './goModule.ts';

const MODULES = [
  {
    module: 'github.com/prometheus-operator/prometheus-operator@v0.85.0',
    folder: 'example/prometheus-operator-crd',
    files: [
      'monitoring.coreos.com_servicemonitors.yaml',
      'monitoring.coreos.com_prometheusrules.yaml',
    ],
  },
  {
    module: 'github.com/kedacore/keda/v2@v2.18.1',
    folder: 'config/crd/bases',
    files: ['keda.sh_scaledobjects.yaml'],
  },
  {
    module: 'sigs.k8s.io/gateway-api@v1.4.0',
    folder: 'config/crd/standard',
    files: ['gateway.networking.k8s.io_httproutes.yaml'],
  },
];

/** @throws ComponentUnavailableError where Go or its modules cannot be had */
export async function customResourceDefinitions(): Promise<Manifest[]> {
  const perModule = MODULES.map(async ({ module, folder, files }) => {
    const from = await goModuleFolder(module);
    return await Promise.all(
      files.map(async (file) => objectsOf(await readFile(join(from, folder, file), 'utf8'))),
    );
  });
  return (await Promise.all(perModule)).flat(2);
}
