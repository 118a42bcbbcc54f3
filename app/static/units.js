// Quantities as the pages write them, in the units the page hands over; the server reads and judges what was typed.

/**
 * @typedef {object} Units
 * @property {[unit: string, size: number, least: number][]} write units to write in, the largest first, each with its
 *   size in base units and the least value it is used for
 * @property {Record<string, number>} read the size of every unit that is understood, in base units
 */

/**
 * @param {number} value in base units
 * @param {Units} units
 */
export function quantityText(value, units, digits = 3) {
  const [unit, size] = units.write.find(([, , least]) => value >= least) ?? units.write.at(-1);
  return `${Number((value / size).toPrecision(digits)).toLocaleString("en", { maximumSignificantDigits: digits })} ${unit}`.trimEnd();
}

/**
 * The value in base units; null when the text is not a plain "12.5 MB": the field keeps it and the server has the last
 * word.
 * @param {string} text
 * @param {Units} units
 * @returns {number | null}
 */
export function readQuantity(text, units) {
  const match = text.trim().match(/^~?\s*([\d.,]+(?:e[+-]?\d+)?)\s*([^\d\s.,]\S*)?$/);
  const size = match && units.read[match[2] ?? ""];
  if (!size) return null;
  const value = parseFloat(match[1].replace(/,(?=\d{3}(\D|$))/g, "").replace(",", "."));
  return Number.isFinite(value) ? value * size : null;
}
