/** What is known of models at the command line, as processes. */
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import path from "node:path"
import { json, type OpenAiServer, startOpenAiServer } from "../../support/openaiServer.ts"
import { runHere } from "./command.ts"
import { run, start } from "./process.ts"

let server: OpenAiServer
let folder: string
beforeAll(async () => {
  server = await startOpenAiServer()
  server.list(() => json(200, { data: [{ id: "wide", context_window: 64_000 }] }))
  folder = mkdtempSync(path.join(tmpdir(), "cli-models-"))
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
  await server.stop()
})

const file = (name: string, content: unknown): string => {
  const at = path.join(folder, name)
  writeFileSync(at, JSON.stringify(content))
  return at
}

describe("models import", () => {
  it("writes facts from the standard input into the configuration file, and leaves the rest as it is", async () => {
    const config = file("import.json", {
      keys: ["k"],
      "x-mine": [1],
      model_facts: { BIG: { tools: true }, own: { tools: false } }
    })
    const { child, ended } = start(["models", "import", "-"], { GATEWAY_CONFIG_PATH: config })
    child.stdin!.end(JSON.stringify({
      big: { litellm_provider: "openai", max_input_tokens: 200_000, max_output_tokens: 8192 },
      none: { litellm_provider: "openai" }
    }))
    const { code, stderr, stdout } = await ended
    assert.deepEqual([code, stderr], [0, ""])
    assert.match(
      stdout,
      /import\.json: facts of 1 model taken, 1 entry without facts or with a name before them left out\n$/
    )
    assert.deepEqual(JSON.parse(readFileSync(config, "utf8")), {
      keys: ["k"],
      "x-mine": [1],
      model_facts: { own: { tools: false }, big: { context_window: 200_000, max_output_tokens: 8192 } }
    })
  })

  it("says why it takes nothing", async () => {
    const config = file("untouched.json", { keys: ["k"] })
    const env = { GATEWAY_CONFIG_PATH: config }
    const [none, missing] = await Promise.all([
      runHere(["models", "import", file("none.json", { a: {} })], { env }),
      runHere(["models", "import", path.join(folder, "missing.json")], { env })
    ])
    assert.deepEqual([none.code, missing.code], [1, 1])
    assert.match(none.stderr, /none\.json has no facts about models\n$/)
    assert.match(missing.stderr, /missing\.json: there is no such file\n$/)
    assert.deepEqual(JSON.parse(readFileSync(config, "utf8")), { keys: ["k"] })
  })
})

describe("models show", () => {
  it("prints each fact with its source, or what codex and clients of OpenRouter read", async () => {
    const config = file("show.json", {
      keys: ["k"],
      upstream: {
        driver: "openai",
        base_url: server.baseUrl,
        models: { big: { model: "wide", efforts: ["high"], tools: true } }
      },
      clients: { codex_instructions: "You are an agent." },
      prices: { big: { input: 1, output: 2 } }
    })
    const bare = file("bare.json", { keys: ["k"] })
    const show = (...args: ReadonlyArray<string>) => runHere(["models", "show", ...args])
    const [table, codex, openRouter, without] = await Promise.all([
      run(["models", "show", config]),
      show("--for", "codex", config),
      show("--for", "openrouter", config),
      show("--for", "codex", bare)
    ])
    assert.deepEqual([table, codex, openRouter, without].map(({ code }) => code), [0, 0, 0, 1])
    assert.match(table.stdout, /^model +display_name +context_window /)
    assert.match(table.stdout, /\nbig +- +64000 \(server\) .* high \(entry\) +yes \(entry\) +- +-\n/)
    const { models } = JSON.parse(codex.stdout) as { models: ReadonlyArray<{ readonly [field: string]: unknown }> }
    assert.deepInclude(models.find(({ slug }) => slug === "big"), {
      context_window: 64_000,
      base_instructions: "You are an agent."
    })
    const { data } = JSON.parse(openRouter.stdout) as { data: ReadonlyArray<{ readonly [field: string]: unknown }> }
    assert.deepInclude(data.find(({ id }) => id === "big"), {
      context_length: 64_000,
      efforts: ["high"],
      pricing: { prompt: "0.000001", completion: "0.000002" }
    })
    assert.match(without.stderr, /clients\.codex_instructions is not set: codex would run without instructions\n$/)
  })
})
