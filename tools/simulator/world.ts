import { Changes } from './changes.ts';
import { Credentials } from './credentials.ts';
import { Dispatch } from './dispatch.ts';
import { Faults } from './faults.ts';
import { Jobs } from './jobs.ts';
import type { Settings } from './options.ts';
import { RateLimits } from './rateLimits.ts';
import { Registrations, type Registration } from './registrations.ts';
import { RegistrationTokens } from './registrationTokens.ts';
import { RequestLog } from './requestLog.ts';
import type { SimulatedRegistration } from './types.ts';
import { Webhooks } from './webhooks.ts';

/** The simulated GitHub behind its HTTP faces. */
export class World {
  readonly settings: Settings;
  readonly changes = new Changes();
  readonly registrations = new Registrations();
  readonly registrationTokens = new RegistrationTokens();
  readonly jobs = new Jobs();
  readonly requests = new RequestLog();
  readonly faults: Faults;
  readonly credentials: Credentials;
  readonly limits: RateLimits;
  readonly webhooks: Webhooks;
  readonly dispatch: Dispatch;
  /** Set once it listens. */
  url = '';

  constructor(settings: Settings) {
    this.settings = settings;
    this.faults = new Faults(settings.seed);
    this.credentials = new Credentials(settings);
    this.limits = new RateLimits(settings.rateLimit, settings.secondaryLimits);
    const installationOf = (login: string): number | undefined =>
      settings.apps
        .flatMap((app) => app.installations)
        .find(({ account }) => account.toLowerCase() === login.toLowerCase())?.id;
    this.webhooks = new Webhooks(
      settings.webhook,
      settings.webhookTimeoutMs,
      this.faults,
      this.changes,
      installationOf,
    );
    this.dispatch = new Dispatch(
      settings,
      this.registrations,
      this.jobs,
      this.changes,
      (action, job) => this.webhooks.announce(action, job),
    );
  }

  /** Whether it has a job, or has just ended its only one. */
  busy(registration: Registration): boolean {
    return registration.jobId !== undefined || registration.finishing === true;
  }

  /** The truth about a registration. */
  describe(registration: Registration): SimulatedRegistration {
    return {
      id: registration.id,
      name: registration.name,
      scope: registration.scope,
      groupId: registration.groupId,
      labels: registration.labels.map((label) => label.name),
      ephemeral: registration.ephemeral,
      jit: registration.jit,
      status: this.dispatch.sessions.online(registration) ? 'online' : 'offline',
      busy: this.busy(registration),
      ...(registration.jobId === undefined ? {} : { jobId: registration.jobId }),
      version: registration.version,
    };
  }
}
