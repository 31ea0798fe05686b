/** What servers receive and clients get, of every style before every driver, is what the golden data says; `npm run golden` writes it. */
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { listGolden, readGolden } from "./files.ts"
import { goldenFiles } from "./golden.ts"

/** The exchanges of a file by their names. */
const exchangesIn = (text: string): ReadonlyMap<string, string> =>
  new Map(text.split(/\n\n(?=# )/).map((exchange) => [exchange.split("\n", 1)[0]!, exchange]))

describe("the golden data", () => {
  it("is there for every style before every driver, and for nothing else", () => {
    assert.deepStrictEqual(listGolden(), goldenFiles.map(({ path }) => path).toSorted())
  })

  it.each(goldenFiles.map((file) => [file.path, file] as const))("%s", async (path, file) => {
    const expected = readGolden(path)
    const text = await Effect.runPromise(file.text)
    // An exchange that differs is shown alone.
    const now = exchangesIn(text)
    for (const [name, exchange] of exchangesIn(expected)) assert.strictEqual(now.get(name), exchange, name)
    assert.isTrue(text === expected, "The exchanges are others, or come in another order")
  })
})
