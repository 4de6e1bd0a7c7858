/**
 * Returns the number of random cases of a test.
 * @param inAll - number in a run that must leave nothing out (`HOLDFAST_REQUIRE=all`)
 * @param otherwise - number in other runs, such as `npm test`
 */
export const caseCount = (inAll: number, otherwise: number): number =>
  process.env['HOLDFAST_REQUIRE'] === 'all' ? inAll : otherwise;
