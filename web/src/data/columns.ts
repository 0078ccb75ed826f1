/** Columns as they travel: running differences and numbers of strings, turned back into arrays. */

/** Undo the differences: each value is the sum of all up to its place. Values may exceed 32 bits. */
export function cumulative(differences: readonly number[]): Float64Array {
  const values = new Float64Array(differences.length);
  let sum = 0;
  for (let i = 0; i < differences.length; i++) {
    sum += differences[i] ?? 0;
    values[i] = sum;
  }
  return values;
}
