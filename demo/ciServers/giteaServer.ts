import { randomBytes } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { dirname, delimiter } from 'node:path';
import PQueue from 'p-queue';
import { GITEA_RUNNER } from '../../core/domain/runnerKinds/gitea.ts';
import type { GiteaAccess } from '../../tools/lab/options.ts';
import { resolveBinary } from '../../tools/lab/resolve.ts';
import type { DemoCiServer, DemoJob, WebhookTarget } from './demoCiServer.ts';

const REPOSITORY = 'acme/app';
const JOB_WITHIN_MS = 30_000;
/** Each runner in its own folder. */
const IN_OWN_FOLDER = 'RUNNER_HOME=$PWD exec "$0" "$@"';

interface Job {
  readonly id: number;
  readonly status: string;
  readonly conclusion?: string;
  readonly runner_name?: string;
}

type Api = <T>(method: string, path: string, body?: object) => Promise<T>;

/** Uses the lab's Gitea, with its official runner as a local process. */
export async function giteaServer(
  access: GiteaAccess,
  webhook: WebhookTarget,
): Promise<DemoCiServer> {
  const api = giteaApi(access);
  const { id: hook } = await api<{ id: number }>('POST', '/orgs/acme/hooks', {
    type: 'gitea',
    active: true,
    events: ['workflow_job'],
    config: {
      url: `http://127.0.0.1:${webhook.port}/webhooks/gitea`,
      content_type: 'json',
      secret: webhook.secret,
    },
  });
  const runners = async (): Promise<string[]> => {
    const path = '/admin/actions/runners?limit=50';
    const answer = await api<{ runners: { name: string }[] }>('GET', path);
    return answer.runners.map(({ name }) => name);
  };
  // A demo that was interrupted may have left some.
  const earlier = await runners();
  // Each job is a commit, and Gitea rejects two at once.
  const commits = new PQueue({ concurrency: 1 });
  const job = async (id: number): Promise<Job> =>
    await api('GET', `/repos/${REPOSITORY}/actions/jobs/${id}`);
  return {
    kind: 'gitea',
    workerEnv: await workerEnv(access),
    runnerInput: { ciServer: 'gitea' },
    queueJob: async (wanted) => await commits.add(async () => await queueJob(api, wanted)),
    isRunning: async (id) => (await job(id)).status === 'in_progress',
    hasSucceeded: async (id, runnerName, text) => {
      const { conclusion, runner_name: runner } = await job(id);
      return conclusion === 'success' && runner === runnerName && (await logOf(access, id)).includes(text); // prettier-ignore
    },
    registrations: async () => (await runners()).filter((name) => !earlier.includes(name)),
    close: async () => await api('DELETE', `/orgs/acme/hooks/${hook}`),
  };
}

async function workerEnv({ url, token }: GiteaAccess): Promise<Record<string, string>> {
  const runner = await resolveBinary('gitea-runner');
  const credential = { server: 'gitea', type: 'pat', tokenEnv: 'GITEA_TOKEN' };
  const command = GITEA_RUNNER.image?.command ?? [];
  return {
    PATH: [dirname(runner), process.env['PATH']].join(delimiter),
    GITEA_TOKEN: token,
    HOLDFAST_CREDENTIALS: JSON.stringify({ default: { ...credential, apiUrl: `${url}/api/v1` } }),
    HOLDFAST_RUNNER_COMMAND: JSON.stringify(['sh', '-c', IN_OWN_FOLDER, ...command]),
  };
}

/** @throws Error unless the answer is 2xx */
const giteaApi =
  ({ url, token }: GiteaAccess): Api =>
  async <T>(method: string, path: string, body?: object) => {
    const answer = await fetch(`${url}/api/v1${path}`, {
      method,
      headers: { authorization: `token ${token}`, 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  };

async function logOf({ url, token }: GiteaAccess, id: number): Promise<string> {
  const headers = { authorization: `token ${token}` };
  return await (
    await fetch(`${url}/api/v1/repos/${REPOSITORY}/actions/jobs/${id}/logs`, { headers })
  ).text();
}

/** Commits a workflow file with this job, and dispatches it. */
async function queueJob(api: Api, { label, name, command }: DemoJob): Promise<number> {
  const file = `${name}-${randomBytes(6).toString('hex')}.yml`;
  const workflow = {
    on: { workflow_dispatch: {} },
    jobs: { [name]: { 'runs-on': ['self-hosted', label], steps: [{ run: command }] } },
  };
  const repository = `/repos/${REPOSITORY}`;
  await api('POST', `${repository}/contents/.gitea%2Fworkflows%2F${file}`, {
    message: `Add ${file}`,
    branch: 'main',
    content: Buffer.from(JSON.stringify(workflow)).toString('base64'),
  });
  const dispatch = `${repository}/actions/workflows/${file}/dispatches?return_run_details=true`;
  const { workflow_run_id: run } = await api<{ workflow_run_id: number }>('POST', dispatch, {
    ref: 'main',
  });
  for (const deadline = Date.now() + JOB_WITHIN_MS; Date.now() < deadline; await delay(100)) {
    const path = `${repository}/actions/runs/${run}/jobs`;
    const [job] = (await api<{ jobs: Job[] }>('GET', path)).jobs;
    if (job !== undefined) return job.id;
  }
  throw new Error(`Gitea made no job of run ${run} within ${JOB_WITHIN_MS / 1_000} s`);
}
