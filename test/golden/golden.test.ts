/** What every style sends for every kind of reply is what its golden file says; `npm run golden` writes the files. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { goldenFiles } from "./exchange.ts"
import { listGolden, readGolden } from "./files.ts"

let made: ReadonlyMap<string, string>
beforeAll(async () => {
  made = await Effect.runPromise(goldenFiles)
})

const onDisk = listGolden()

describe("golden frames", () => {
  it("are there for every kind of reply, and for nothing else", () => {
    assert.deepStrictEqual(onDisk, [...made.keys()].toSorted())
  })

  it.each(onDisk)("%s", (path) => {
    assert.strictEqual(made.get(path), readGolden(path))
  })
})
