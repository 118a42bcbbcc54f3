// Where the axes of a curve end that grows while one looks: they may widen, and never move with every point.

const STEPS = [1, 1.5, 2, 3, 4, 5, 6, 8, 10];
const ROOM = 1.05;

/**
 * From 0 to a round number above what was seen first and highest; one that holds stays.
 * @param {number | null} first
 * @param {number | null} high
 * @returns {[number, number]}
 */
export function steadyRange(first, high) {
  const most = Math.max(first ?? 0, high ?? 0) * ROOM;
  if (!(most > 0) || !Number.isFinite(most)) return [0, 1];
  const size = 10 ** Math.floor(Math.log10(most));
  return [0, size * STEPS.find((step) => step * size >= most)];
}
