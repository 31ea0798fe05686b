/**
 * `/help`: the pages of this version, as HTML and as Markdown (`/help/NAME.md`), with a search over their titles, and `/llms.txt`, which
 * lists them. They are read at the first request, and come from this gateway alone.
 */
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import { promisify } from "node:util"
import { brotliDecompress } from "node:zlib"
import { assets } from "../assets.ts"
import { consoleHeaders } from "../console/headers.ts"
import { sendFile } from "../sentFile.ts"
import { helpAsset, type HelpFiles } from "./helpFiles.ts"
import { type Made, made } from "./made.ts"

const indexName = "README"

let reading: Promise<HelpFiles> | undefined

const files = Effect.flatMap(
  assets,
  (all) =>
    Effect.promise(() =>
      reading ??= promisify(brotliDecompress)(all.get(helpAsset) ?? new Uint8Array()).then((bytes) =>
        JSON.parse(new TextDecoder().decode(bytes)) as HelpFiles
      )
    )
)

/** Files that were asked for, by their paths; there are at most two for each page, and two more. */
const kept = new Map<string, Promise<Made>>()

const headers = { ...consoleHeaders, "cache-control": "no-cache" }

const html = "text/html; charset=utf-8"
const markdown = "text/markdown; charset=utf-8"

/** The list of pages for language models, in the form of llmstxt.org. */
const listOf = ({ pages }: HelpFiles): string =>
  `# Model Gateway\n\n> A self-hosted gateway for language models. The pages of the running version.\n\n${
    pages.map(({ name, title }) => `- [${title}](help/${name}.md)\n`).join("")
  }`

const textOf = (files: HelpFiles, path: string): readonly [text: string, type: string] | undefined => {
  if (path === "style.css") return [files.style, "text/css; charset=utf-8"]
  if (path === "llms.txt") return [listOf(files), "text/plain; charset=utf-8"]
  const isMarkdown = path.endsWith(".md")
  const name = isMarkdown ? path.slice(0, -".md".length) : path
  const page = files.pages.find((page) => page.name === (name === "" ? indexName : name))
  if (page === undefined) return undefined
  return isMarkdown ? [page.markdown, markdown] : [page.html, html]
}

const fileAt = (files: HelpFiles, path: string): Promise<Made> | undefined => {
  const known = kept.get(path)
  if (known !== undefined) return known
  const text = textOf(files, path)
  if (text === undefined) return undefined
  const making = made(...text, headers)
  kept.set(path, making)
  return making
}

const escapeHtml = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll("\"", "&quot;")

/** The titles and headings that have every word of a query, as a list of links. Headings are HTML already. */
const found = ({ pages }: HelpFiles, query: string): string => {
  const words = query.toLowerCase().split(/\s+/).filter((word) => word !== "").slice(0, 8)
  const has = (text: string): boolean => words.length > 0 && words.every((word) => text.toLowerCase().includes(word))
  const rows = pages.flatMap(({ headings, name, title }) => [
    ...(has(title) ? [`<li><a href="${name}">${escapeHtml(title)}</a></li>`] : []),
    ...headings.filter(([, text]) => has(`${title} ${text}`) && !has(title)).map(([anchor, text]) =>
      `<li><a href="${name}#${encodeURIComponent(anchor)}">${escapeHtml(title)}: ${text}</a></li>`
    )
  ])
  return rows.length === 0 ? `<p>No title contains this.</p>` : `<ul>${rows.join("")}</ul>`
}

/** A query has at most this many characters; the rest has no effect. */
const longestQuery = 200

const serveHelp = Effect.gen(function*() {
  const request = yield* HttpServerRequest.HttpServerRequest
  const [place = "", search = ""] = request.url.split("?", 2)
  if (place.endsWith("/help")) {
    // Relative, because a proxy in front of the gateway may strip a prefix that the gateway does not know.
    return HttpServerResponse.empty({ status: 308, headers: { ...headers, location: "help/" } })
  }
  const all = yield* files
  const path = place.slice(place.lastIndexOf("/help/") + "/help/".length)
  const query = new URLSearchParams(search).get("q")?.slice(0, longestQuery)
  if (path === "" && query !== undefined) {
    return HttpServerResponse.text(all.search.replace("<!--found-->", () => found(all, query)), {
      contentType: html,
      headers
    })
  }
  const file = yield* Effect.promise(async () => fileAt(all, path))
  return file === undefined
    ? HttpServerResponse.text("There is no such page: see /help/\n", { status: 404, headers })
    : sendFile(request, file.file, file.headers)
})

const serveList = Effect.gen(function*() {
  const request = yield* HttpServerRequest.HttpServerRequest
  const all = yield* files
  const { file, headers } = yield* Effect.promise(async () => (await fileAt(all, "llms.txt"))!)
  return sendFile(request, file, headers)
})

export const Help = HttpRouter.addAll([
  HttpRouter.route("GET", "/help/*", serveHelp),
  HttpRouter.route("GET", "/llms.txt", serveList)
])
