/**
 * Fenced blocks of Markdown texts: the README and the pages in docs.
 */
import { readdirSync, readFileSync } from "node:fs"
import path from "node:path"

/** A block, its info string, and what it prints if a block marked `output` follows it. */
export interface Snippet {
  readonly info: string
  readonly text: string
  readonly prints: string | undefined
}

const fence = /^```([^\n]*)\n(.*?)^```[ \t]*$/gms

/** All blocks of a text in order, without those marked `output`. */
const blocksOf = (markdown: string): ReadonlyArray<Snippet> => {
  const blocks = [...markdown.matchAll(fence)].map(([, info = "", text = ""]) => ({ info: info.trim(), text }))
  return blocks.flatMap((block, i) => {
    if (block.info === "output") return []
    const next = blocks[i + 1]
    return [{ ...block, prints: next?.info === "output" ? next.text : undefined }]
  })
}

/** The blocks whose info string is `info`, in order. Throws if the text has no such block. */
export const snippetsOf = (markdown: string, info: string): ReadonlyArray<Snippet> => {
  const found = blocksOf(markdown).filter((block) => block.info === info)
  if (found.length === 0) throw new Error(`no block is marked ${info}`)
  return found
}

const root = path.join(import.meta.dirname, "../..")

/** The text of the README or of a page, by its path in the repository. */
export const pageText = (file: string): string => readFileSync(path.join(root, file), "utf8")

/** A block with the page it is from and its number there. */
export interface PageSnippet extends Snippet {
  readonly name: string
}

/** The README and the pages in docs, by their paths in the repository. */
export const pages = (): ReadonlyArray<string> => [
  "README.md",
  ...readdirSync(path.join(root, "docs"), { recursive: true, encoding: "utf8" }).filter((file) => file.endsWith(".md"))
    .toSorted().map((file) => `docs/${file.replaceAll(path.sep, "/")}`)
]

/** All blocks of the README and the pages in docs. The Chinese pages have those of the English ones. */
export const allSnippets = (): ReadonlyArray<PageSnippet> =>
  pages().filter((file) => !file.endsWith(".zh.md")).flatMap((file) =>
    blocksOf(pageText(file)).map((block, i) => ({ ...block, name: `${file}, block ${i + 1}` }))
  )
