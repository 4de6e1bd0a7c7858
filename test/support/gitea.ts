import { randomBytes } from 'node:crypto';
import type { GiteaAccess } from '../../tools/lab/options.ts';
import { untilSeen } from './until.ts';

/** A job of a workflow run, as Gitea's REST API shows it. */
export interface GiteaJobState {
  readonly id: number;
  readonly run_id: number;
  readonly status: string;
  readonly conclusion?: string;
  readonly runner_name?: string;
}

/** A runner, as Gitea's REST API shows it. */
export interface GiteaRunnerState {
  readonly id: number;
  readonly name: string;
  readonly status: string;
  readonly disabled: boolean;
}

const USER = 'tester';
const PASSWORD = 'tester-Passw0rd!';
const OUTSIDER = 'outsider';

/**
 * Tokens of an administrator with all and with few permissions, and of a user without permissions.
 */
export interface GiteaTokens {
  readonly all: string;
  readonly look: string;
  readonly outsider: string;
}

/** The lab's Gitea. Tests control it and read its actual state. */
export class Gitea {
  readonly access: GiteaAccess;

  constructor(access: GiteaAccess | undefined) {
    if (access === undefined) throw new Error('the lab has no Gitea');
    this.access = access;
  }

  /** Returns the response of the REST API. @throws Error unless it is 2xx */
  async api<T = unknown>(
    method: string,
    path: string,
    body?: object,
    authorization = `token ${this.access.token}`,
  ): Promise<T> {
    const answer = await fetch(`${this.access.url}/api/v1${path}`, {
      method,
      headers: { authorization, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return (text === '' ? undefined : JSON.parse(text)) as T;
  }

  /** Creates the users with their tokens, and a repository of the first. */
  async tokens(): Promise<GiteaTokens> {
    const users = await this.api<{ login: string }[]>('GET', '/admin/users');
    for (const username of [USER, OUTSIDER]) {
      if (users.some(({ login }) => login === username)) continue;
      const email = `${username}@lab.invalid`;
      const user = { username, email, password: PASSWORD, must_change_password: false };
      await this.api('POST', '/admin/users', user);
    }
    await this.api('PATCH', `/admin/users/${USER}`, {
      admin: true,
      login_name: USER,
      source_id: 0,
    });
    const all = await this.token(['all']);
    const repository = { name: 'own', auto_init: true, default_branch: 'main' };
    const repositories = await this.api<{ name: string }[]>('GET', `/users/${USER}/repos`);
    if (repositories.length === 0)
      await this.api('POST', '/user/repos', repository, `token ${all}`);
    return {
      all,
      look: await this.token(['organization', 'repository', 'user', 'admin'].map((it) => `read:${it}`)), // prettier-ignore
      outsider: await this.token(['all'], OUTSIDER),
    };
  }

  /** Creates a token with these permissions for a user that {@link tokens} has created. */
  async token(scopes: readonly string[], user = USER): Promise<string> {
    const login = `Basic ${Buffer.from(`${user}:${PASSWORD}`).toString('base64')}`;
    const name = randomBytes(6).toString('hex');
    const path = `/users/${user}/tokens`;
    return (await this.api<{ sha1: string }>('POST', path, { name, scopes }, login)).sha1;
  }

  /** Returns the runners under a path such as `/orgs/acme`. */
  async runners(at = '/admin'): Promise<GiteaRunnerState[]> {
    const path = `${at}/actions/runners?limit=50`;
    return (await this.api<{ runners: GiteaRunnerState[] }>('GET', path)).runners;
  }

  /** Runs a script as a workflow's only job. @param repository `owner/repo` */
  async queueJob(repository: string, labels: string[], script = 'true'): Promise<GiteaJobState> {
    const file = `${randomBytes(6).toString('hex')}.yml`;
    const workflow = {
      on: { workflow_dispatch: {} },
      jobs: { job: { 'runs-on': labels, steps: [{ run: script }] } },
    };
    await this.api('POST', `/repos/${repository}/contents/.gitea%2Fworkflows%2F${file}`, {
      message: 'workflow',
      branch: 'main',
      content: Buffer.from(JSON.stringify(workflow)).toString('base64'),
    });
    const { workflow_run_id: run } = await this.api<{ workflow_run_id: number }>(
      'POST',
      `/repos/${repository}/actions/workflows/${file}/dispatches?return_run_details=true`,
      { ref: 'main' },
    );
    const path = `/repos/${repository}/actions/runs/${run}/jobs`;
    const { jobs } = await untilSeen(
      `a job of run ${run}`,
      async () => await this.api<{ jobs: readonly [GiteaJobState] }>('GET', path),
      (seen) => seen.jobs.length > 0,
    );
    return jobs[0];
  }

  async job(repository: string, id: number): Promise<GiteaJobState> {
    return await this.api('GET', `/repos/${repository}/actions/jobs/${id}`);
  }

  async jobLog(repository: string, id: number): Promise<string> {
    const path = `/api/v1/repos/${repository}/actions/jobs/${id}/logs`;
    const headers = { authorization: `token ${this.access.token}` };
    return await (await fetch(`${this.access.url}${path}`, { headers })).text();
  }

  async waitForJob(repository: string, id: number, status: string): Promise<GiteaJobState> {
    return await untilSeen(
      `job ${id} ${status}`,
      async () => await this.job(repository, id),
      (job) => job.status === status,
    );
  }

  /** Cancels a run as its web page does, because there is no REST route. */
  async cancelRun(repository: string, run: number): Promise<void> {
    const answer = await fetch(`${this.access.url}/${repository}/actions/runs/${run}/cancel`, {
      method: 'POST',
      headers: { 'X-WEBAUTH-USER': this.access.user },
    });
    if (!answer.ok) throw new Error(`cancel of run ${run}: ${answer.status}`);
  }

  /** Ends every job and removes every runner. */
  async clear(): Promise<void> {
    const active = '/admin/actions/jobs?limit=50&status=queued&status=in_progress';
    const { jobs } = await this.api<{ jobs: (GiteaJobState & { url: string })[] }>('GET', active);
    for (const { url, run_id: run } of jobs)
      await this.cancelRun(url.split('/').slice(-5, -3).join('/'), run);
    for (const { id } of await this.runners())
      await this.api('DELETE', `/admin/actions/runners/${id}`).catch((error: unknown) => {
        // The end of its job has removed the runner.
        if (!String(error).includes(': 404 ')) throw error;
      });
  }
}
