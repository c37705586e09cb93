// Counts checks, and prints one line for each that fails and one at the end.
const wanted = process.argv[2]; // a part of the names of the checks to run, or nothing for all
let passed = 0;
const failed = [];

export async function check(name, run) {
  if (wanted && !name.includes(wanted)) return;
  try {
    await run();
    passed++;
  } catch (error) {
    failed.push(name);
    console.log(`FAILED ${name}: ${error.code ?? ""} ${error.message ?? error}`);
  }
}

export function equal(got, want, what = "value") {
  const [g, w] = [JSON.stringify(got), JSON.stringify(want)];
  if (g !== w) throw new Error(`${what} is ${g}, not ${w}`);
}

// fails returns the error of a call that must fail.
export async function fails(call) {
  let result;
  try {
    result = await call();
  } catch (error) {
    return error;
  }
  throw new Error(`succeeded with ${JSON.stringify(result)}`);
}

export function finish(client) {
  console.log(`${client}: ${passed} checks passed, ${failed.length} failed`);
  process.exit(failed.length ? 1 : 0);
}
