/** How many deaths of each kind there are, and which: told in the output, so that they can be had again. */

const soaks = import.meta.env.MODE === "soak";

export const rounds = Number(process.env["ROUNDS"] ?? (soaks ? 50 : 5));
export const seed = Number(process.env["SEED"] ?? (soaks ? Date.now() % 1_000_000_000 : 1));

console.log(`${rounds} deaths of each kind; SEED=${seed} has the same again`);
