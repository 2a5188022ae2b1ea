/** Numbers by chance, the same for the same seed. */

export interface Random {
  /** A whole number from 0 up to `end`, without it. */
  below(end: number): number;
  /** A number from 0 up to `end`. */
  upTo(end: number): number;
}

/** A xorshift; the seed is any whole number. */
export function randomOf(seed: number): Random {
  let state = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) | 1;
  const next = (): number => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) / 2 ** 32;
  };
  for (let i = 0; i < 8; i += 1) next();
  return { below: (end) => Math.floor(next() * end), upTo: (end) => next() * end };
}
