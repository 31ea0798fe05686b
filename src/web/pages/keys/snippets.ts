/**
 * How clients call this gateway, with its address and a key filled in: the lines of the pages in `docs/clients`.
 */
import { opencodeText, shellJson, shellWord, shownJson, tomlText } from "../../../domain/printed.ts"

export const snippetNames = [
  "curl",
  "OpenAI SDK",
  "Anthropic SDK",
  "Google SDK",
  "codex",
  "Claude Code",
  "gemini-cli",
  "qwen-code",
  "opencode",
  "pi"
] as const

export type SnippetName = (typeof snippetNames)[number]

interface Access {
  /** The gateway's address, without a slash at its end. */
  readonly base: string
  readonly key: string
  readonly model: string
}

const lines = (...all: ReadonlyArray<string>): string => all.join("\n")

const exported = (variables: Readonly<Record<string, string>>, command: string): string =>
  lines(...Object.entries(variables).map(([name, value]) => `export ${name}=${shellWord(value)}`), command)

const json = (value: unknown): string => shownJson(value, 2)

const say = "Say hello"

const snippets: Readonly<Record<SnippetName, (access: Access) => string>> = {
  "curl": ({ base, key, model }) =>
    lines(
      `curl ${shellWord(`${base}/v1/chat/completions`)} \\`,
      `  -H ${shellWord(`Authorization: Bearer ${key}`)} -H 'Content-Type: application/json' \\`,
      `  -d ${shellJson({ model, messages: [{ role: "user", content: say }] })}`
    ),
  "OpenAI SDK": ({ base, key, model }) =>
    lines(
      `import OpenAI from "openai"`,
      ``,
      `const client = new OpenAI({`,
      `  baseURL: ${shownJson(`${base}/v1`)},`,
      `  apiKey: ${shownJson(key)}`,
      `})`,
      `const reply = await client.chat.completions.create({`,
      `  model: ${shownJson(model)},`,
      `  messages: [{ role: "user", content: "${say}" }]`,
      `})`,
      `console.log(reply.choices[0].message.content)`
    ),
  "Anthropic SDK": ({ base, key, model }) =>
    lines(
      `import Anthropic from "@anthropic-ai/sdk"`,
      ``,
      `const client = new Anthropic({`,
      `  baseURL: ${shownJson(base)},`,
      `  apiKey: ${shownJson(key)}`,
      `})`,
      `const reply = await client.messages.create({`,
      `  model: ${shownJson(model)},`,
      `  max_tokens: 1024,`,
      `  messages: [{ role: "user", content: "${say}" }]`,
      `})`,
      `console.log(reply.content)`
    ),
  "Google SDK": ({ base, key, model }) =>
    lines(
      `import { GoogleGenAI } from "@google/genai"`,
      ``,
      `const client = new GoogleGenAI({`,
      `  apiKey: ${shownJson(key)},`,
      `  httpOptions: { baseUrl: ${shownJson(base)}, apiVersion: "v1beta" }`,
      `})`,
      `const reply = await client.models.generateContent({`,
      `  model: ${shownJson(model)},`,
      `  contents: "${say}"`,
      `})`,
      `console.log(reply.text)`
    ),
  "codex": ({ base, key, model }) =>
    lines(
      `# In ~/.codex/config.toml. Before the start: export GATEWAY_KEY=${shellWord(key)}`,
      `model = ${tomlText(model)}`,
      `model_provider = "gateway"`,
      ``,
      `[model_providers.gateway]`,
      `name = "Model Gateway"`,
      `base_url = ${tomlText(`${base}/v1`)}`,
      `env_key = "GATEWAY_KEY"`,
      `wire_api = "responses"`
    ),
  "Claude Code": ({ base, key, model }) =>
    exported({ ANTHROPIC_BASE_URL: base, ANTHROPIC_AUTH_TOKEN: key, ANTHROPIC_MODEL: model }, "claude"),
  "gemini-cli": ({ base, key, model }) =>
    lines(
      `mkdir -p ~/.gemini`,
      `cat > ~/.gemini/settings.json <<'END'`,
      `{ "security": { "auth": { "selectedType": "gemini-api-key" } } }`,
      `END`,
      exported({ GOOGLE_GEMINI_BASE_URL: base, GEMINI_API_KEY: key, GEMINI_MODEL: model }, "gemini")
    ),
  "qwen-code": ({ base, key, model }) =>
    exported({ OPENAI_BASE_URL: `${base}/v1`, OPENAI_API_KEY: key, OPENAI_MODEL: model }, "qwen"),
  "opencode": ({ base, key, model }) =>
    opencodeText({
      provider: {
        gateway: {
          npm: "@ai-sdk/openai-compatible",
          options: { baseURL: `${base}/v1`, apiKey: key },
          models: { [model]: {} }
        }
      },
      model: `gateway/${model}`
    }),
  "pi": ({ base, key, model }) =>
    json({
      providers: {
        gateway: { baseUrl: `${base}/v1`, api: "openai-completions", apiKey: key, models: [{ id: model }] }
      }
    })
}

/** What somebody needs to begin: the address, the key, and three lines for a shell that list the models. */
export const messageOf = ({ base, key }: Omit<Access, "model">): string =>
  lines(
    `Base URL: ${base}/v1`,
    `API key: ${key}`,
    ``,
    `export OPENAI_BASE_URL=${shellWord(`${base}/v1`)}`,
    `export OPENAI_API_KEY=${shellWord(key)}`,
    `curl "$OPENAI_BASE_URL/models" -H "Authorization: Bearer $OPENAI_API_KEY"`
  )

/** The file of a snippet that is not run but saved. */
export const snippetFiles: Readonly<Partial<Record<SnippetName, string>>> = {
  codex: "~/.codex/config.toml",
  opencode: "opencode.json",
  pi: "~/.pi/agent/models.json"
}

export const snippetOf = (name: SnippetName, access: Access): string => snippets[name](access)
