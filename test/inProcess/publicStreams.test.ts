/** What embedders import has bytes and events as streams. */
import { assert, describe, it } from "@effect/vitest"
import { readFileSync } from "node:fs"
import path from "node:path"

const textOf = (file: string) => readFileSync(path.join(import.meta.dirname, "../../src", file), "utf8")

describe("the modules with public types", () => {
  it("have streams instead of pulls and async iterables", () => {
    const modules = [...textOf("index.ts").matchAll(/ from "\.\/(.+?)"/g)].map(([, file]) => file!)
    assert.includeMembers(modules, ["upstream/Exchange.ts", "upstream/Upstream.ts"])
    const others = modules.filter((file) => /"effect\/Pull"|\bChunkPull\b|\bAsyncIterable</.test(textOf(file)))
    assert.deepStrictEqual(others, [])
  })
})
