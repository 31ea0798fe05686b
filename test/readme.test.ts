/**
 * The README's commands, as written: its blocks marked `sh run`, each in a folder of its own, beside a gateway that runs. (Its
 * blocks marked `ts run` are run where the package is installed, in `test/package`.) A block marked `output` after one is what
 * it prints.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { execFile } from "node:child_process"
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { promisify } from "node:util"
import { limitRanges } from "../src/domain/limits.ts"
import { adminKey, businessKey, type RunningGateway, startGateway } from "./support/gateway.ts"
import { service, serviceEnvironment } from "./support/service.ts"
import { snippetsOf } from "./support/snippets.ts"

const root = path.join(import.meta.dirname, "..")
const readme = path.join(root, "README.md")
const text = readFileSync(readme, "utf8")
const snippets = snippetsOf(text, "sh run")

describe("the README", () => {
  it("names every limit that can be configured", () => {
    for (const field of Object.keys(limitRanges)) assert.include(text, `\`${field}\``)
  })
})

describe("the README's commands", () => {
  let gateway: RunningGateway
  let folder: string
  beforeAll(async () => {
    gateway = await startGateway({ embeddings: { provider: "builtin" } })
    folder = mkdtempSync(path.join(tmpdir(), "readme-"))
    const command = path.join(folder, "model-gateway")
    writeFileSync(command, `#!/bin/sh\nexec "${process.execPath}" "${service}" "$@"\n`)
    chmodSync(command, 0o755)
  })
  afterAll(async () => {
    rmSync(folder, { recursive: true })
    await gateway.stop()
  })

  it.each(snippets.map((snippet) => ({ ...snippet, name: snippet.text.split("\n")[0] })))(
    "$name",
    async ({ prints, text }) => {
      const { stdout } = await promisify(execFile)("sh", ["-euc", text], {
        cwd: mkdtempSync(path.join(folder, "block-")),
        env: {
          ...serviceEnvironment,
          PATH: `${folder}:${serviceEnvironment["PATH"]}`,
          GATEWAY_URL: gateway.url,
          GATEWAY_KEY: businessKey,
          GATEWAY_ADMIN_KEY: adminKey
        }
      })
      if (prints !== undefined) assert.strictEqual(stdout.trim(), prints.trim())
    }
  )
})
