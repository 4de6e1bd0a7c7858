import type { Scenario } from '../../support/together.ts';

/** A life that fails on its way to a meeting calls it off, so that the others do not wait for it. */
export function partaking<World extends { callOff(cause: unknown): void }>(
  scenarios: Readonly<Record<string, Scenario<World>>>,
): Record<string, Scenario<World>> {
  const partakes =
    (scenario: Scenario<World>): Scenario<World> =>
    async (world) => {
      try {
        await scenario(world);
      } catch (error) {
        world.callOff(error);
        throw error;
      }
    };
  return Object.fromEntries(
    Object.entries(scenarios).map(([name, scenario]) => [name, partakes(scenario)]),
  );
}
