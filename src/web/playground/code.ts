/**
 * A request as code, for `curl` and for the vendor's SDK. The key is read from the environment variable `GATEWAY_KEY`.
 */
import { base } from "../state/client.ts"
import type { Ask } from "./conversation.ts"
import { wireOf } from "./wire.ts"

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`

export const curlOf = (ask: Ask): string => {
  const { body, path } = wireOf(ask)
  return [
    `curl ${ask.stream ? "-N " : ""}${quoted(base + path)} \\`,
    `  -H "Authorization: Bearer $GATEWAY_KEY" -H "Content-Type: application/json" \\`,
    `  -d ${quoted(JSON.stringify(body, null, 2))}`
  ].join("\n")
}

const openai = (call: string, show: string) => (ask: Ask, body: Readonly<Record<string, unknown>>): string =>
  [
    `import OpenAI from "openai"`,
    ``,
    `const client = new OpenAI({ baseURL: "${base}/v1", apiKey: process.env.GATEWAY_KEY })`,
    `const reply = await client.${call}(${JSON.stringify(body, null, 2)})`,
    ask.stream ? `for await (const event of reply) console.log(event)` : `console.log(${show})`
  ].join("\n")

const anthropic = (ask: Ask, body: Readonly<Record<string, unknown>>): string =>
  [
    `import Anthropic from "@anthropic-ai/sdk"`,
    ``,
    `const client = new Anthropic({ baseURL: "${base}", apiKey: process.env.GATEWAY_KEY })`,
    `const reply = await client.messages.create(${JSON.stringify(body, null, 2)})`,
    ask.stream ? `for await (const event of reply) console.log(event)` : `console.log(reply.content)`
  ].join("\n")

const genai = (ask: Ask, { contents, ...config }: Readonly<Record<string, unknown>>): string =>
  [
    `import { GoogleGenAI } from "@google/genai"`,
    ``,
    `const client = new GoogleGenAI({`,
    `  apiKey: process.env.GATEWAY_KEY,`,
    `  httpOptions: { baseUrl: "${base}", apiVersion: "v1beta" }`,
    `})`,
    `const reply = await client.models.${ask.stream ? "generateContentStream" : "generateContent"}(${
      JSON.stringify({ model: ask.model, contents, ...(Object.keys(config).length === 0 ? {} : { config }) }, null, 2)
    })`,
    ask.stream ? `for await (const chunk of reply) console.log(chunk)` : `console.log(reply.text)`
  ].join("\n")

const sdks = {
  chat: openai("chat.completions.create", "reply.choices[0].message"),
  responses: openai("responses.create", "reply.output"),
  messages: anthropic,
  generate: genai
} as const

export const sdkOf = (ask: Ask): string => sdks[ask.style](ask, wireOf(ask).body)
