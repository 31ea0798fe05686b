/**
 * `npm run test:servers -- --record [SERVER …]`: writes what real servers say about their models to `test/fixtures/modelLists/recorded.json`, for
 * the tests of the readers of lists. The rows of servers that are not asked stay.
 */
import { readFileSync, writeFileSync } from "node:fs"
import path from "node:path"
import { cache } from "./install.ts"
import { type ModelName, models } from "./models.ts"
import { type RealServer, realServers } from "./realServers.ts"
import { versionOf } from "./versions.ts"

const file = path.join(import.meta.dirname, "../test/fixtures/modelLists/recorded.json")

/** A request about models; one with a body has the name of a model in it. */
type Asked = readonly [method: "GET" | "POST", path: string, model?: string]

const list: Asked = ["GET", "/v1/models"]

/** What each server is asked, with the model that it has loaded by then. */
const questions: Readonly<Record<string, readonly [loaded: ModelName, ...asked: ReadonlyArray<Asked>]>> = {
  "llama.cpp": ["thinker", list, ["GET", "/props"]],
  Ollama: [
    "thinker",
    list,
    ["GET", "/api/ps"],
    ...[...Object.keys(models), "wide"].map((model) => ["POST", "/api/show", `${model}:latest`] as const)
  ],
  LiteLLM: ["thinker", list],
  vLLM: ["thinker", list],
  transformers: ["thinker", list]
}

/** Characters of a text that are kept: templates and licenses say nothing about a model. */
const longestText = 200

/** Elements of a list that are kept, of tensors for example. */
const mostElements = 8

const shortened = (body: unknown): unknown =>
  JSON.parse(
    JSON.stringify(body, (_, value: unknown) =>
      typeof value === "string"
        ? value.replaceAll(cache, "/cache").slice(0, longestText)
        : Array.isArray(value)
        ? value.slice(0, mostElements)
        : value)
  )

const record = async (server: RealServer): Promise<object> => {
  const [loaded, ...asked] = questions[server.name]!
  const { model: own, url } = await server.serving(loaded)
  const headers = {
    "content-type": "application/json",
    ...(server.key === undefined ? {} : { authorization: `Bearer ${server.key}` })
  }
  const question = { model: own, max_tokens: 1, messages: [{ role: "user", content: "Hello" }] }
  await (await fetch(`${url}/v1/chat/completions`, { method: "POST", headers, body: JSON.stringify(question) })).text()
  const answers: Record<string, unknown> = {}
  for (const [method, path, model] of asked) {
    const body = model === undefined ? {} : { body: JSON.stringify({ model }) }
    const answer = await fetch(url + path, { method, headers, ...body })
    answers[`${method} ${path}${model === undefined ? "" : ` ${model}`}`] = shortened(await answer.json())
  }
  return { version: versionOf(server.name), answers }
}

/** Records the servers with these names; without a name, all. */
export const recordLists = async (names: ReadonlyArray<string>): Promise<void> => {
  for (const [name, launch] of Object.entries(realServers)) {
    if (names.length > 0 && !names.includes(name)) continue
    const server = await launch()
    try {
      const before = JSON.parse(readFileSync(file, "utf8")) as object
      writeFileSync(file, `${JSON.stringify({ ...before, [name]: await record(server) }, undefined, 2)}\n`)
    } finally {
      await server.stop()
    }
  }
}
