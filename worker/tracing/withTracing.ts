import type { InjectedSinks, ReplayWorkerOptions, WorkerOptions } from '@temporalio/worker';
import { loadOptional } from '../../activities/shared/optionalPackages.ts';
import type { TraceSinks } from '../../core/activities/index.ts';
import { workflowInterceptorsPath } from '../plugin/workflowBundle.ts';
import type { SpanExportTarget } from './spanSink.ts';

/** A life that another worker traces may come here. */
const NOWHERE: InjectedSinks<TraceSinks> = { holdfastSpans: { ended: { fn: () => undefined } } };

/** A Worker's options with what exports the spans of its lives, activities and client. @param target - absent: none are, and nothing of OpenTelemetry's is loaded. @throws Error that names a package which tracing needs and which is not installed */
export async function withTracing(
  options: WorkerOptions,
  target: SpanExportTarget | undefined,
): Promise<WorkerOptions> {
  if (target === undefined) return options;
  const [{ spanSink }, { TracingClientInterceptor, traceActivities }] = await loadOptional(
    'tracing',
    async () => await Promise.all([import('./spanSink.ts'), import('./interceptors.ts')]),
  );
  const { interceptors, sinks } = options;
  const { workflow = [], ...others } = interceptors?.client ?? {};
  return {
    ...options,
    sinks: { ...sinks, ...spanSink(target) },
    interceptors: {
      ...interceptors,
      client: {
        ...others,
        workflow: Array.isArray(workflow)
          ? [...workflow, new TracingClientInterceptor()]
          : workflow,
      },
      activity: [...(interceptors?.activity ?? []), traceActivities],
    },
  };
}

/**
 * Adds the interceptor that traces workflows by their history to the options, if this process
 * bundles the workflows. A bundle made ahead of time either has it or not. It is not combined with
 * the SDK's own interceptors, which trace all workflows.
 */
export function withWorkflowTracing<O extends WorkerOptions | ReplayWorkerOptions>(options: O): O {
  const { workflowBundle, interceptors, sinks } = options;
  if (workflowBundle !== undefined) return { ...options, sinks: { ...NOWHERE, ...sinks } };
  return {
    ...options,
    sinks: { ...NOWHERE, ...sinks },
    interceptors: {
      ...interceptors,
      workflowModules: withTracedWorkflows(interceptors?.workflowModules ?? []),
    },
  };
}

/** Adds the module that traces workflows to those of a bundle, unless it is there or the SDK's own traces all of them. */
export function withTracedWorkflows(modules: readonly string[]): string[] {
  const own = workflowInterceptorsPath();
  return modules.some((path) => path === own || path.includes('interceptors-opentelemetry'))
    ? [...modules]
    : [...modules, own];
}
