/**
 * The README and the pages in docs, as readers use them: commands are run beside a running gateway, configurations are checked,
 * recipes are served. Blocks marked `ts run` are run in `test/package`, and those of docs/operate and docs/clients in tests of
 * their own.
 */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { execFile } from "node:child_process"
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { promisify } from "node:util"
import { decodeConfig } from "../src/config/decodeConfig.ts"
import { isJsonObject } from "../src/config/json.ts"
import { adminKey, businessKey, startGateway } from "./support/gateway.ts"
import { chunk as generated } from "./support/generateServer.ts"
import { textBlock, wholeMessage } from "./support/messagesServer.ts"
import { type Answer, json, modelList, startOpenAiServer, streamed } from "./support/openaiServer.ts"
import * as responsesServer from "./support/responsesServer.ts"
import { service, serviceEnvironment } from "./support/service.ts"
import { allSnippets, pageText } from "./support/snippets.ts"

const snippets = allSnippets()
const marked = (info: string) => snippets.filter((snippet) => snippet.info === info)
const modules = path.join(import.meta.dirname, "../node_modules")

describe("the README", () => {
  it("has at most 150 lines", () => {
    assert.isAtMost(pageText("README.md").split("\n").length - 1, 150)
  })

  it("compares gateways by rows that were measured", () => {
    const rowsOf = (file: string) =>
      pageText(file).split("\n").filter((line) => line.startsWith("| "))
        .map((line) => line.split("|").slice(1, -1).map((cell) => cell.trim()))
    const measured = rowsOf("docs/migrate/comparison.md")
    const head = measured.find((row) => row.some((cell) => cell.startsWith("LiteLLM "))) ?? []
    const column = (name: RegExp) => head.findIndex((cell) => name.test(cell))
    const columns = [
      0,
      column(/^this gateway/),
      column(/^LiteLLM/),
      column(/^@portkey-ai\/gateway/),
      column(/^@musistudio\/llms/)
    ]
    assert.notInclude(columns, -1)
    const rows = rowsOf("README.md").filter((row) => row.length === 5).slice(2)
    assert.lengthOf(rows, 4)
    const known = measured.map((row) => columns.map((i) => row[i]?.replace(/^(\d+): .*/, "$1")).join(" | "))
    assert.deepEqual(rows.filter((row) => !known.includes(row.join(" | "))), [])
  })
})

describe("the README and the pages", () => {
  it("have no block that no test knows, except for other programs' configuration", () => {
    const here = ["sh run", "ts client", "json"]
    const inOtherTests = [
      "ts run",
      "sh nodes",
      "sh workers",
      "js socket",
      "sh gemini-cli",
      "sh qwen-code",
      "sh messages",
      "sh carried",
      "sh store",
      "sh cluster",
      "conf server",
      "conf sentinel",
      "conf cluster",
      "ini",
      "toml",
      "hcl",
      "sh telemetry"
    ]
    const untested = ["text", "nginx", "sh docker", "sh chart", "json opencode", "json pi", "json gemini-cli"]
    for (const { info, name } of snippets) assert.include([...here, ...inOtherTests, ...untested], info, name)
  })

  it.each(marked("json"))("have a valid configuration: $name", async ({ text }) => {
    const config: unknown = JSON.parse(text)
    assert(isJsonObject(config))
    const { warnings } = await Effect.runPromise(decodeConfig(config, { duplicates: "refuse" }))
    // A snippet may show one group without those that it refers to.
    const own = warnings.filter((warning) => !/is of no configured key|of no known model/.test(warning))
    assert.deepStrictEqual(own, [])
  })
})

/** The models that agents ask for by default: for answers, for fast steps, for reasoning. */
const defaultModels = [
  ["/v1/messages", "claude-sonnet-4-5-20250929", "fast"],
  ["/v1/messages", "claude-haiku-4-5-20251001", "fast"],
  ["/v1/messages", "claude-haiku-5-5", "fast"],
  ["/v1/messages", "claude-opus-4-6", "thinking"],
  ["/v1/messages", "claude-opus-5-5", "thinking"],
  ["/v1/responses", "gpt-5-codex", "thinking"],
  ["/v1/responses", "gpt-5", "fast"],
  ["/v1/responses", "gpt-6.1-sol", "fast"]
] as const

describe("the recipes for servers", () => {
  const recipes = marked("json").flatMap(({ name, text }) => {
    const config: unknown = JSON.parse(text)
    if (!isJsonObject(config) || !isJsonObject(config["upstream"])) return []
    const { models } = config["upstream"]
    return isJsonObject(models) ? [{ config, models, name, upstream: config["upstream"] }] : []
  })

  it.each(recipes)("serve agents' default models: $name", async ({ config, models, upstream }) => {
    assert.isAtLeast(recipes.length, 6)
    const known = new Set(Object.values(models).map((model) => isJsonObject(model) ? model["model"] : model))
    const server = await startOpenAiServer()
    server.list(() => modelList(...[...known].map(String)))
    const thought = { type: "thinking", thinking: "Let me think.", signature: "" }
    const replies: { readonly [driver: string]: Answer } = {
      openai: streamed({ reasoning_content: "Let me think." }, { content: "Hello" }),
      messages: wholeMessage([thought, textBlock("Hello")]),
      responses: responsesServer.whole(responsesServer.responseOf([
        responsesServer.reasoningItem("Let me think."),
        responsesServer.messageItem("Hello")
      ])),
      generate: json(
        200,
        generated([{ text: "Let me think.", thought: true }, { text: "Hello" }], { finishReason: "STOP" })
      )
    }
    server.answer(({ body, path }) =>
      known.has(String(body["model"] ?? /models\/([^:]+):/.exec(path)?.[1]))
        ? replies[path.endsWith("/responses") ? "responses" : String(upstream["driver"])]!
        : json(404, { error: { message: "The model does not exist.", code: "model_not_found" } })
    )
    // The address of a vendor's server is its host: the gateway knows its paths.
    const base_url = upstream["vendor"] === undefined ? server.baseUrl : new URL(server.baseUrl).origin
    const gateway = await startGateway({ ...config, keys: [businessKey], upstream: { ...upstream, base_url } })
    try {
      for (const [place, model, kind] of defaultModels) {
        const messages = place === "/v1/messages"
        const reply = await fetch(`${gateway.url}${place}`, {
          method: "POST",
          headers: { authorization: `Bearer ${businessKey}` },
          body: JSON.stringify({
            model,
            stream: true,
            ...(messages
              ? {
                max_tokens: 9_000,
                messages: [{ role: "user", content: "Hi" }],
                thinking: { type: "enabled", budget_tokens: 8_000 }
              }
              : { input: "Hi", reasoning: { effort: "medium" } })
          })
        })
        const said = await reply.text()
        assert.include(said, "Hello", `${model}: ${said}`)
        // A Responses server says itself what it thinks.
        const { path } = server.requests.at(-1)!
        const isServers = place === "/v1/responses" && path === place && upstream["tools"] === undefined
        assert.strictEqual(said.includes("Let me think."), isServers || kind === "thinking", `${model}: ${said}`)
      }
    } finally {
      await gateway.stop()
      await server.stop()
    }
  })
})

describe("the commands of the README and the pages", () => {
  let folder: string
  beforeAll(() => {
    folder = mkdtempSync(path.join(tmpdir(), "readme-"))
    const command = path.join(folder, "model-gateway")
    writeFileSync(command, `#!/bin/sh\nexec "${process.execPath}" "${service}" "$@"\n`)
    chmodSync(command, 0o755)
    // `curl -s` of a page shows a refusal and succeeds; here a refusal fails the block.
    const curl = path.join(folder, "curl")
    writeFileSync(curl, `#!/bin/sh\nPATH="${serviceEnvironment["PATH"]}" exec curl --fail-with-body "$@"\n`)
    chmodSync(curl, 0o755)
  })
  afterAll(() => rmSync(folder, { recursive: true }))

  /** Runs a block that uses a gateway at the pages' address. Each block has a new gateway. */
  const beside = async (text: string, run: (text: string, env: Record<string, string>) => Promise<string>) => {
    const gateway = await startGateway()
    try {
      return await run(text.replaceAll("http://127.0.0.1:5001", gateway.url), {
        ...serviceEnvironment,
        PATH: `${folder}:${serviceEnvironment["PATH"]}`,
        GATEWAY_KEY: businessKey,
        GATEWAY_ADMIN_KEY: adminKey
      })
    } finally {
      await gateway.stop()
    }
  }

  it.each(marked("sh run"))("run: $name", async ({ prints, text }) => {
    const printed = await beside(text, async (script, env) => {
      const cwd = mkdtempSync(path.join(folder, "block-"))
      return (await promisify(execFile)("sh", ["-euc", script], { cwd, env })).stdout
    })
    if (prints !== undefined) assert.strictEqual(printed.trim(), prints.trim())
  })

  it.each(marked("ts client"))("run with the SDK: $name", async ({ text }) => {
    // The SDK is found from within node_modules, where Node runs no TypeScript.
    mkdirSync(path.join(modules, ".cache"), { recursive: true })
    const place = mkdtempSync(path.join(modules, ".cache/readme-"))
    try {
      const printed = await beside(text, async (script, env) => {
        const file = path.join(place, "client.mjs")
        writeFileSync(file, script)
        return (await promisify(execFile)(process.execPath, [file], { env })).stdout
      })
      assert.isNotEmpty(printed.trim())
    } finally {
      rmSync(place, { recursive: true })
    }
  })
})
