import { afterEach, assert, describe, it } from "@effect/vitest"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { floorViolations } from "../../scripts/floors.ts"

const roots: Array<string> = []

afterEach(() => {
  for (const root of roots.splice(0)) rmSync(root, { recursive: true })
})

/** The violations of a repository with these files in src. */
const violationsIn = (files: Readonly<Record<string, string>>): Array<string> => {
  const root = mkdtempSync(path.join(tmpdir(), "floors-"))
  roots.push(root)
  for (const [file, text] of Object.entries(files)) {
    const target = path.join(root, "src", file)
    mkdirSync(path.dirname(target), { recursive: true })
    writeFileSync(target, text)
  }
  return floorViolations(root)
}

describe("floors", () => {
  it("lets a module import its own floor and lower ones", () => {
    assert.deepStrictEqual(
      violationsIn({
        "domain/Usage.ts": `import * as Schema from "effect/Schema"\nexport const usage = Schema.Number`,
        "domain/stream/sse.ts": `export type { usage } from "../domain/Usage.ts"`,
        "styles/chat/render.ts": `import { usage } from "../../domain/Usage.ts"\nimport "../../stream/sse.ts"\nusage`,
        "main.ts": `import "./styles/chat/render.ts"\nimport * as Effect from "effect/Effect"\nimport "node:fs"\nEffect`
      }),
      []
    )
  })

  for (
    const [form, statement] of [
      ["an import", `import { run } from "../server/Gateway.ts"`],
      ["a type import", `import type { Run } from "../server/Gateway.ts"`],
      ["a bare import", `import "../server/Gateway.ts"`],
      ["an import over several lines", `import {\n  run,\n  stop\n} from "../server/Gateway.ts"`],
      ["a re-export", `export * from "../server/Gateway.ts"`],
      ["a named re-export", `export { run } from "../server/Gateway.ts"`],
      ["a dynamic import", `export const load = () => import("../server/Gateway.ts")`],
      ["an import inside a type", `export type Run = import("../server/Gateway.ts").Run`]
    ] as const
  ) {
    it(`refuses ${form} of a higher floor, with the line`, () => {
      const line = statement.includes("\n") ? 6 : 3
      assert.deepStrictEqual(
        violationsIn({ "config/store.ts": `// one\n\n${statement}\n`, "server/Gateway.ts": "export {}" }),
        [`src/config/store.ts:${line}: floor 1 may not import src/server/Gateway.ts, which is on floor 6`]
      )
    })
  }

  it("lets the console import the contract, and nothing else of the gateway", () => {
    assert.deepStrictEqual(
      violationsIn({
        "web/main.tsx":
          `import { h } from "preact"\nimport "../api.ts"\nimport "./client.ts"\nexport const a = <p>{h}</p>`,
        "web/client.ts": `import "../domain/routes.ts"`,
        "domain/routes.ts": "export {}",
        "api.ts": "export {}",
        "index.ts": `import "./web/client.ts"`
      }),
      [
        "src/index.ts:1: floor 7 may not import src/web/client.ts, which is on floor 8",
        "src/web/client.ts:1: the console may import src/api.ts and src/contracts.ts and src/domain/identity.ts and src/domain/printed.ts alone, not src/domain/routes.ts"
      ]
    )
  })

  it("lets src/testing.ts alone import the folder testing", () => {
    assert.deepStrictEqual(
      violationsIn({
        "testing/Provider.ts": `import "../server/Gateway.ts"`,
        "testing.ts": `export * from "./testing/Provider.ts"`,
        "server/Gateway.ts": "export {}",
        "main.ts": `import "./testing/Provider.ts"`,
        "index.ts": `export * from "./testing.ts"`
      }),
      [
        "src/index.ts:1: floor 7 may not import src/testing.ts, which is on floor 8",
        "src/main.ts:1: floor 7 may not import src/testing/Provider.ts, which is on floor 8"
      ]
    )
  })

  it("is not misled by comments and strings that look like imports", () => {
    assert.deepStrictEqual(
      violationsIn({
        "domain/text.ts": [
          `// import "../server/Gateway.ts"`,
          `/* import * as Effect from "effect" */`,
          `export const text = 'import "../server/Gateway.ts"' + \`import "node:fs"\``
        ].join("\n"),
        "server/Gateway.ts": "export {}"
      }),
      []
    )
  })

  it("keeps drivers apart, but for what servers share and where one is made of two, and styles from drivers", () => {
    assert.deepStrictEqual(
      violationsIn({
        "upstream/generate/driver.ts": `import "../openai/usage.ts"\nimport "../server/usage.ts"`,
        "upstream/openai/usage.ts": "export {}",
        "upstream/responses/driver.ts": `import "../openai/usage.ts"`,
        "upstream/compatible/driver.ts": `import "../openai/usage.ts"\nimport "../responses/driver.ts"`,
        "upstream/session/driver.ts": `import "../compatible/driver.ts"`,
        "upstream/server/usage.ts": "export {}",
        "upstream/protocols.ts": `import "./generate/driver.ts"\nimport "./openai/usage.ts"`,
        "styles/chat/render.ts": `import "../../upstream/server/usage.ts"\nimport "../../upstream/openai/usage.ts"`
      }),
      [
        "src/styles/chat/render.ts:2: a style may not import a driver (src/upstream/openai/usage.ts)",
        "src/upstream/generate/driver.ts:1: a driver may not import another one (src/upstream/openai/usage.ts)",
        "src/upstream/responses/driver.ts:1: a driver may not import another one (src/upstream/openai/usage.ts)",
        "src/upstream/session/driver.ts:1: a driver may not import another one (src/upstream/compatible/driver.ts)"
      ]
    )
  })

  it("keeps contracts apart, but for what they share, and from the sieve's readers", () => {
    assert.deepStrictEqual(
      violationsIn({
        "contracts/chat/facts.ts":
          `import "../messages/facts.ts"\nimport "../shared/facts.ts"\nimport "../Contract.ts"`,
        "contracts/messages/facts.ts": `import "../../sieve/engine.ts"\nimport "../../sieve/history.ts"`,
        "contracts/shared/facts.ts": `import "../chat/schema.ts"`,
        "contracts/chat/schema.ts": "export {}",
        "contracts/Contract.ts": "export {}",
        "contracts/contracts.ts": `import "./chat/facts.ts"\nimport "./messages/facts.ts"`,
        "sieve/engine.ts": "export {}",
        "sieve/history.ts": "export {}"
      }),
      [
        "src/contracts/chat/facts.ts:1: a contract may not import another one (src/contracts/messages/facts.ts)",
        "src/contracts/messages/facts.ts:1: a contract may not import the sieve's readers (src/sieve/engine.ts)",
        "src/contracts/shared/facts.ts:1: a contract may not import another one (src/contracts/chat/schema.ts)"
      ]
    )
  })

  it("keeps styles apart, but for what they share", () => {
    assert.deepStrictEqual(
      violationsIn({
        "styles/chat/Api.ts": `import "../messages/Api.ts"\nimport "../shared/usage.ts"\nimport "../Style.ts"`,
        "styles/messages/Api.ts": `import "./render.ts"`,
        "styles/messages/render.ts": "export {}",
        "styles/shared/usage.ts": "export {}",
        "styles/Style.ts": "export {}"
      }),
      ["src/styles/chat/Api.ts:1: a style may not import another one (src/styles/messages/Api.ts)"]
    )
  })

  it("reports a circle once, at the import that closes it", () => {
    assert.deepStrictEqual(
      violationsIn({
        "domain/a.ts": `import "./b.ts"`,
        "domain/b.ts": `import "./leaf.ts"\nimport "../sieve/c.ts"`,
        "domain/leaf.ts": "export {}",
        "sieve/c.ts": `import type { A } from "../domain/a.ts"\nexport type C = A`
      }),
      [
        "src/sieve/c.ts:1: imports in a circle: src/domain/a.ts -> src/domain/b.ts -> src/sieve/c.ts -> src/domain/a.ts"
      ]
    )
  })

  it("takes two ways to one module for no circle", () => {
    assert.deepStrictEqual(
      violationsIn({
        "domain/a.ts": `import "./b.ts"\nimport "./c.ts"`,
        "domain/b.ts": `import "./d.ts"`,
        "domain/c.ts": `import "./d.ts"`,
        "domain/d.ts": "export {}"
      }),
      []
    )
  })

  it("refuses the whole of effect on every floor", () => {
    assert.deepStrictEqual(violationsIn({ "main.ts": `import { Effect } from "effect"\nEffect` }), [
      `src/main.ts:1: import modules one by one ("effect/Effect"), not the whole of "effect"`
    ])
  })

  for (const specifier of ["effect/Effect", "effect/Clock", "effect/http/HttpClient", "node:fs", "jose"]) {
    it(`keeps ${specifier} off floor 0, and off it only`, () => {
      assert.deepStrictEqual(
        violationsIn({ "sieve/sieve.ts": `import "${specifier}"`, "config/store.ts": `import "${specifier}"` }),
        [`src/sieve/sieve.ts:1: floor 0 is pure (no services, no I/O, no clock) and may not import "${specifier}"`]
      )
    })
  }

  it("refuses a folder that is on no floor and imports from outside src", () => {
    assert.deepStrictEqual(
      violationsIn({ "misc/a.ts": "export {}", "domain/b.ts": `import "../../test/support.ts"` }),
      [
        "src/domain/b.ts:1: src may not import what is outside it (test/support.ts)",
        "src/misc/a.ts:1: src/misc is on no floor: give it one in scripts/floors.ts"
      ]
    )
  })

  it("lets the package's own version be imported", () => {
    assert.deepStrictEqual(violationsIn({ "admin/version.ts": `import "../../package.json"` }), [])
  })

  it("throws for a file that cannot be parsed", () => {
    assert.throws(() => violationsIn({ "main.ts": "import {" }), /src\/main\.ts: /)
  })
})
