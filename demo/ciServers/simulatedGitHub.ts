import { startSimulator } from '../../tools/simulator/simulator.ts';
import type { DemoCiServer, WebhookTarget } from './demoCiServer.ts';

const TOKEN = 'ghp_demo';
const REPOSITORY = 'acme/widgets';

/**
 * Starts the simulated GitHub.
 * @param listen - address that it listens on
 * @param host - host name under which runners reach it
 */
export async function simulatedGitHub(
  { listen, host, port }: { listen: string; host: string; port: number },
  webhook: WebhookTarget,
): Promise<DemoCiServer> {
  const publicUrl = `http://${host}:${port}`;
  const simulator = await startSimulator({
    host: listen,
    port,
    publicUrl,
    tokens: [{ token: TOKEN, name: 'demo' }],
    webhook: {
      url: `http://127.0.0.1:${webhook.port}/webhooks/github`,
      secret: webhook.secret,
    },
  });
  return {
    kind: 'github',
    workerEnv: {
      // As the runners see it: a runner with a registration token is told this address.
      HOLDFAST_GITHUB_URL: publicUrl,
      HOLDFAST_GITHUB_TOKEN: TOKEN,
    },
    runnerInput: {},
    queueJob: async ({ label, name, command }) => {
      const labels = ['self-hosted', label];
      return simulator.queueJob({ repo: REPOSITORY, labels, name, command }).id;
    },
    isRunning: async (job) => simulator.job(job)?.status === 'in_progress',
    hasSucceeded: async (job, runnerName, text) => {
      const { conclusion, runner_name: runner, output } = simulator.job(job) ?? {};
      const printed = output?.some((line) => line.includes(text)) === true;
      return conclusion === 'success' && runner === runnerName && printed;
    },
    registrations: async () => simulator.runners().map(({ name }) => name),
    close: async () => await simulator.stop(),
  };
}
