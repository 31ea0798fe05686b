import { assert, describe, it } from "@effect/vitest"
import { onPath, serverAddress } from "../../src/domain/serverAddress.ts"

describe("the address of a server", () => {
  const cases: ReadonlyArray<readonly [address: string, path: string, whole: string]> = [
    ["http://a", "/models", "/models"],
    ["http://a/v1", "/models?limit=9", "/v1/models?limit=9"],
    ["http://a/v1/?", "/models", "/v1/models"],
    ["https://a/v1?api-version=1", "/models", "/v1/models?api-version=1"],
    ["https://a/v1?api-version=1&x=a%20b", "/models?limit=9", "/v1/models?limit=9&api-version=1&x=a%20b"],
    ["https://a?alt=json&key=k", "/m:stream?alt=sse", "/m:stream?alt=sse&key=k"],
    ["https://a?%61lt=json", "/m?alt=sse", "/m?alt=sse"],
    ["https://a?flag&&x=1", "/m", "/m?flag&x=1"]
  ]
  it.each(cases)("%s leads the call %s to %s", (address, path, whole) => {
    const { origin, pathOf } = serverAddress(address)
    assert.strictEqual(pathOf(path), whole)
    assert.strictEqual(origin, new URL(address).origin)
  })

  it("keeps its query when its path changes", () => {
    const cut = (path: string) => path.replace(/\/v1$/, "")
    assert.strictEqual(onPath("https://a/v1?x=/v1", cut), "https://a?x=/v1")
    assert.strictEqual(onPath("https://a/v1", cut), "https://a")
  })
})
