/** The lines of the pages in docs/clients work with the SDK behind each client; docs/operate/logs.md names real outcomes. */
import Anthropic from "@anthropic-ai/sdk"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import { GoogleGenAI } from "@google/genai"
import { execFile } from "node:child_process"
import { promisify } from "node:util"
import OpenAI from "openai"
import { errorTable } from "../src/domain/GatewayError.ts"
import { businessKey, type RunningGateway, startGateway } from "./support/gateway.ts"
import { pages, pageText } from "./support/snippets.ts"

const clients = pages().filter((page) =>
  page.startsWith("docs/clients/") || page === "docs/guides/responses-websocket.md"
).map(pageText).join("\n")

let gateway: RunningGateway
beforeAll(async () => {
  gateway = await startGateway({})
})
afterAll(() => gateway.stop())

/** A block of the pages, with the running gateway's address and key. */
const block = (info: string): string => {
  const found = new RegExp(`^\`\`\`${info}\\n([^]*?)^\`\`\`$`, "m").exec(clients)?.[1]
  assert.isDefined(found, `docs/clients has no block ${info}`)
  return found!.replaceAll("http://127.0.0.1:5001", gateway.url).replaceAll("my-key", businessKey)
}

/** The variables that a shell block exports. */
const variables = (info: string): Record<string, string> =>
  Object.fromEntries(
    [...block(info).matchAll(/^export (\w+)=(.*)$/gm)].map(([, name = "", value = ""]) => [name, value])
  )

/** Runs with environment variables, like the client's process. */
const within = async <A>(environment: Record<string, string>, use: () => Promise<A>): Promise<A> => {
  const before = { ...process.env }
  Object.assign(process.env, environment)
  try {
    return await use()
  } finally {
    for (const name of Object.keys(environment)) {
      if (before[name] === undefined) Reflect.deleteProperty(process.env, name)
      else process.env[name] = before[name]
    }
  }
}

const messages = [{ role: "user" as const, content: "!say pasted" }]

const chat = async (client: OpenAI, model: string) => {
  const { choices } = await client.chat.completions.create({ model, messages })
  return choices[0]?.message.content
}

describe("the configuration in docs/clients", () => {
  it("of codex works with its SDK", async () => {
    const toml = block("toml")
    const value = (name: string) => new RegExp(`^${name} = "(.*)"$`, "m").exec(toml)?.[1] ?? ""
    assert.strictEqual(value("wire_api"), "responses")
    assert.include(clients, `export ${value("env_key")}=my-key`)
    const client = new OpenAI({ baseURL: value("base_url"), apiKey: businessKey })
    const stream = client.responses.stream({ model: value("model"), input: "!say pasted" })
    assert.strictEqual((await stream.finalResponse()).output_text, "pasted")
  })

  it("of the SDK over WebSocket works as it stands", async () => {
    const code = block("js socket").replace(`"Hello"`, `"!say pasted"`)
    const run = promisify(execFile)(process.execPath, ["--input-type=module", "-e", code], { cwd: import.meta.dirname })
    assert.deepStrictEqual(await run, { stdout: "pasted", stderr: "" })
  })

  it("of gemini-cli works with its SDK", () => {
    const environment = variables("sh gemini-cli")
    return within(environment, async () => {
      const client = new GoogleGenAI({
        apiKey: process.env["GEMINI_API_KEY"]!,
        httpOptions: { baseUrl: process.env["GOOGLE_GEMINI_BASE_URL"]! }
      })
      const reply = await client.models.generateContent({
        model: environment["GEMINI_MODEL"]!,
        contents: "!say pasted"
      })
      assert.strictEqual(reply.text, "pasted")
    })
  })

  it("of qwen-code works with its SDK", () => {
    const environment = variables("sh qwen-code")
    // The SDK reads the address and the key itself.
    return within(
      environment,
      async () => assert.strictEqual(await chat(new OpenAI(), environment["OPENAI_MODEL"]!), "pasted")
    )
  })

  it("of opencode works with its SDK", async () => {
    const { model, provider } = JSON.parse(block("json opencode")) as {
      readonly model: string
      readonly provider: Readonly<
        Record<string, { readonly options: { baseURL: string; apiKey: string }; readonly models: object }>
      >
    }
    const [name = "", id = ""] = model.split("/")
    assert.containsAllKeys(provider[name]?.models, [id])
    assert.strictEqual(await chat(new OpenAI(provider[name]!.options), id), "pasted")
  })

  it("of pi works with its SDK", async () => {
    const { providers } = JSON.parse(block("json pi")) as {
      readonly providers: {
        readonly gateway: {
          readonly baseUrl: string
          readonly apiKey: string
          readonly models: ReadonlyArray<{ readonly id: string }>
        }
      }
    }
    const { apiKey, baseUrl, models } = providers.gateway
    for (const { id } of models) assert.strictEqual(await chat(new OpenAI({ baseURL: baseUrl, apiKey }), id), "pasted")
  })

  it("agents that use the messages API", () => {
    const environment = variables("sh messages")
    return within(environment, async () => {
      const stream = new Anthropic().messages.stream({
        model: environment["ANTHROPIC_MODEL"]!,
        max_tokens: 100,
        messages
      })
      assert.strictEqual(await stream.finalText(), "pasted")
    })
  })
})

describe("docs/operate/logs.md", () => {
  const logs = pageText("docs/operate/logs.md")

  it("explains every outcome of a log line", () => {
    for (const code of [...Object.keys(errorTable), "ok", "client_left", "stop", "length", "tool_calls"]) {
      assert.include(logs, `\`${code}\``)
    }
  })
})
