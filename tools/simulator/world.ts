import { Changes } from './changes.ts';
import { Credentials } from './credentials.ts';
import { Dispatch } from './dispatch.ts';
import { Faults } from './faults.ts';
import { Jobs } from './jobs.ts';
import type { Settings } from './options.ts';
import { RateLimits } from './rateLimits.ts';
import { Registrations, type Registration } from './registrations.ts';
import { RegistrationTokens } from './registrationTokens.ts';
import { ScaleSets, type ScaleSet } from './scaleSets.ts';
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
  readonly scaleSets: ScaleSets;
  /** Tokens of the Actions service, with the scope that each is for. */
  readonly tenantTokens = new Map<string, { scope: string; expiresMs: number }>();
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
    this.scaleSets = new ScaleSets({
      settings,
      changes: this.changes,
      jobs: this.jobs,
      registrations: this.registrations,
      busy: (registration) => this.busy(registration),
      offer: (job) => this.dispatch.offer(job),
    });
    this.dispatch = new Dispatch(
      settings,
      this.registrations,
      this.jobs,
      this.changes,
      (action, job) => {
        this.webhooks.announce(action, job);
        this.scaleSets.jobChanged(action, job);
      },
      this.scaleSets,
    );
  }

  /** Whether it has a job, or has just ended its only one. */
  busy(registration: Registration): boolean {
    return registration.jobId !== undefined || registration.finishing === true;
  }

  /** Removes a scale set with its idle runners. */
  removeScaleSet(set: ScaleSet): void {
    this.scaleSets.remove(set);
    for (const registration of this.registrations.all())
      if (registration.scaleSetId === set.id && !this.busy(registration))
        this.dispatch.remove(registration);
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
      ...(registration.scaleSetId === undefined ? {} : { scaleSetId: registration.scaleSetId }),
      status: this.dispatch.sessions.online(registration) ? 'online' : 'offline',
      busy: this.busy(registration),
      ...(registration.jobId === undefined ? {} : { jobId: registration.jobId }),
      version: registration.version,
    };
  }
}
