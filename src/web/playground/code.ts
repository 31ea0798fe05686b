/**
 * A request as code, for `curl` and for the vendor's SDK. The key is read from the environment variable `GATEWAY_KEY`.
 */
import { shellJson, shellWord, shownJson } from "../../domain/printed.ts"
import { base } from "../state/client.ts"
import type { Prompt } from "./conversation.ts"
import { wireOf } from "./wire.ts"

export const curlOf = (prompt: Prompt): string => {
  const { body, path } = wireOf(prompt)
  return [
    `curl ${prompt.stream ? "-N " : ""}${shellWord(base + path)} \\`,
    `  -H "Authorization: Bearer $GATEWAY_KEY" -H "Content-Type: application/json" \\`,
    `  -d ${shellJson(body, 2)}`
  ].join("\n")
}

const openai = (call: string, show: string) => (prompt: Prompt, body: Readonly<Record<string, unknown>>): string =>
  [
    `import OpenAI from "openai"`,
    ``,
    `const client = new OpenAI({ baseURL: "${base}/v1", apiKey: process.env.GATEWAY_KEY })`,
    `const reply = await client.${call}(${shownJson(body, 2)})`,
    prompt.stream ? `for await (const event of reply) console.log(event)` : `console.log(${show})`
  ].join("\n")

const anthropic = (prompt: Prompt, body: Readonly<Record<string, unknown>>): string =>
  [
    `import Anthropic from "@anthropic-ai/sdk"`,
    ``,
    `const client = new Anthropic({ baseURL: "${base}", apiKey: process.env.GATEWAY_KEY })`,
    `const reply = await client.messages.create(${shownJson(body, 2)})`,
    prompt.stream ? `for await (const event of reply) console.log(event)` : `console.log(reply.content)`
  ].join("\n")

const genai = (prompt: Prompt, { contents, ...config }: Readonly<Record<string, unknown>>): string =>
  [
    `import { GoogleGenAI } from "@google/genai"`,
    ``,
    `const client = new GoogleGenAI({`,
    `  apiKey: process.env.GATEWAY_KEY,`,
    `  httpOptions: { baseUrl: "${base}", apiVersion: "v1beta" }`,
    `})`,
    `const reply = await client.models.${prompt.stream ? "generateContentStream" : "generateContent"}(${
      shownJson({ model: prompt.model, contents, ...(Object.keys(config).length === 0 ? {} : { config }) }, 2)
    })`,
    prompt.stream ? `for await (const chunk of reply) console.log(chunk)` : `console.log(reply.text)`
  ].join("\n")

const sdks = {
  chat: openai("chat.completions.create", "reply.choices[0].message"),
  responses: openai("responses.create", "reply.output"),
  messages: anthropic,
  generate: genai
} as const

export const sdkOf = (prompt: Prompt): string => sdks[prompt.style](prompt, wireOf(prompt).body)
