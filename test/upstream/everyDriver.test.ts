/** What belongs to a driver beside its code: each protocol of the table has all of it. */
import { assert, describe, it } from "@effect/vitest"
import { readdirSync } from "node:fs"
import { driverNames, isServer, protocolNames } from "../../src/contracts/drivers.ts"
import * as library from "../../src/index.ts"
import { makers } from "../../src/upstream/protocols.ts"
import { pageText } from "../support/snippets.ts"

describe.each(protocolNames)("the driver %s", (name) => {
  it("can be made by apps", () => {
    assert.include(Object.values(library) as ReadonlyArray<unknown>, makers[name])
  })

  it.runIf(isServer(name))("has a recipe among the pages of servers", () => {
    const pages = readdirSync("docs/servers").filter((page) => page.endsWith(".md"))
    assert.isTrue(pages.some((page) => pageText(`docs/servers/${page}`).includes(`"driver": "${name}"`)))
  })
})

describe("the names of drivers", () => {
  it("are one for each protocol, and the answerer in the gateway", () => {
    assert.deepStrictEqual(driverNames, ["embedded", ...protocolNames])
  })
})
