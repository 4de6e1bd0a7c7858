import type { InjectedSinks, ReplayWorkerOptions, WorkerOptions } from '@temporalio/worker';
import { loadOptional } from '../../activities/shared/optionalPackages.ts';
import type { TraceSinks } from '../../core/activities/index.ts';
import { workflowInterceptorsPath } from '../plugin/workflowBundle.ts';
import type { SpanExportTarget } from './spanSink.ts';

/** Sink that drops spans. It receives those of workflows that another worker traces. */
const NOWHERE: InjectedSinks<TraceSinks> = { holdfastSpans: { ended: { fn: () => undefined } } };

/**
 * Adds the export of spans of workflows, activities and the client to a Worker's options.
 * @param target - destination of the spans. Absent: none are exported, and OpenTelemetry is not
 * loaded
 * @throws Error that names a missing package
 */
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

/**
 * Adds the module that traces workflows to the modules of a bundle, unless they contain it or the
 * SDK's own module, which traces all workflows.
 */
export function withTracedWorkflows(modules: readonly string[]): string[] {
  const own = workflowInterceptorsPath();
  return modules.some((path) => path === own || path.includes('interceptors-opentelemetry'))
    ? [...modules]
    : [...modules, own];
}
