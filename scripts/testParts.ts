// The parts of the tests that can be run alone: `./scripts/test PART`.

/** The folders and files of `test` of each part. What is in none runs in a run of everything alone. */
export const testParts: Readonly<Record<string, ReadonlyArray<string>>> = {
  sieve: ["sieve", "domain/stream"],
  styles: ["styles", "contracts", "golden", "clients.test.ts"],
  upstream: ["upstream", "several"],
  accounts: ["accounts", "completion", "credentials", "placement"],
  cluster: ["cluster"],
  config: ["config", "domain"],
  usage: ["usage", "recordings"],
  web: ["web"],
  server: ["server", "admin", "gateway", "http", "hotPath", "inProcess", "limits", "testing"]
}

/** The filters of vitest for the tests of a part: paths below the repository's folder; `undefined` if no part has the name. */
export const filtersOf = (name: string): ReadonlyArray<string> | undefined =>
  Object.hasOwn(testParts, name)
    ? testParts[name]!.map((each) => `test/${each}${each.endsWith(".ts") ? "" : "/"}`)
    : undefined
