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
import { isJsonObject } from "../src/config/json.ts"
import { limitRanges } from "../src/domain/limits.ts"
import { adminKey, businessKey, type RunningGateway, startGateway } from "./support/gateway.ts"
import { json, startOpenAiServer, streamed } from "./support/openaiServer.ts"
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

/** What Claude Code and codex ask for by default: a model to answer, a fast one, a thinking one. */
const defaultModels = [
  ["/v1/messages", "claude-sonnet-4-5-20250929"],
  ["/v1/messages", "claude-haiku-4-5-20251001"],
  ["/v1/messages", "claude-opus-4-6"],
  ["/v1/responses", "gpt-5-codex"],
  ["/v1/responses", "gpt-5"]
] as const

describe("the README's recipes", () => {
  const recipes = snippetsOf(text, "json").flatMap(({ text }) => {
    const config: unknown = JSON.parse(text)
    if (!isJsonObject(config) || !isJsonObject(config["upstream"])) return []
    const { base_url, models } = config["upstream"]
    return isJsonObject(models) ? [{ config, models, name: String(base_url), upstream: config["upstream"] }] : []
  })

  it.each(recipes)("serve agents' default models at $name", async ({ config, models, upstream }) => {
    assert.isAtLeast(recipes.length, 5)
    const known = new Set(Object.values(models).map((model) => isJsonObject(model) ? model["model"] : model))
    const server = await startOpenAiServer()
    server.answer(({ body }) =>
      known.has(String(body["model"]))
        ? streamed({ content: "Hello" })
        : json(404, { error: { message: "The model does not exist.", code: "model_not_found" } })
    )
    const gateway = await startGateway({ ...config, upstream: { ...upstream, base_url: server.baseUrl } })
    try {
      for (const [place, model] of defaultModels) {
        const messages = place === "/v1/messages"
        const reply = await fetch(`${gateway.url}${place}`, {
          method: "POST",
          headers: { authorization: `Bearer ${businessKey}` },
          body: JSON.stringify({
            model,
            stream: true,
            ...(messages ? { max_tokens: 9, messages: [{ role: "user", content: "Hi" }] } : { input: "Hi" })
          })
        })
        const said = await reply.text()
        assert.include(said, "Hello", `${model}: ${said}`)
      }
    } finally {
      await gateway.stop()
      await server.stop()
    }
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
