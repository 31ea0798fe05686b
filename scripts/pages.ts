// Keeps the pages in docs short and connected: a page that is written by hand has at most 700 words, links lead to it from the README,
// and it links on. Code, generated tables and references do not count as words.
import { readFileSync } from "node:fs"
import path from "node:path"
import { linksOf, markdownFiles } from "./links.ts"

/** Words of a page that is written by hand. */
const mostWords = 700

/** The words of a text, without code blocks and generated tables. Two Chinese characters count as a word. */
export const wordsOf = (text: string): number => {
  const prose = text.replaceAll(/^<!-- made by [^]*?^<!-- end -->$/gm, "").replaceAll(/^```[^]*?^```$/gm, "")
  const characters = prose.match(/\p{Script=Han}/gu)?.length ?? 0
  const words =
    prose.replaceAll(/\p{Script=Han}+/gu, " ").split(/\s+/).filter((word) => /[\p{L}\p{N}]/u.test(word)).length
  return words + Math.ceil(characters / 2)
}

/** What is wrong with pages, by their paths and texts, as `file: reason`. The README is where readers begin. */
export const pageFaults = (texts: ReadonlyMap<string, string>): Array<string> => {
  const links = new Map(
    Array.from(texts, ([file, text]) => [file, new Set(linksOf(file, text).map((link) => link.file))] as const)
  )
  const reached = new Set(["README.md"])
  // A set visits what is added while it is read: each page once.
  for (const file of reached) for (const linked of links.get(file) ?? []) if (texts.has(linked)) reached.add(linked)
  return Array.from(texts, ([file, text]) => {
    const words = wordsOf(text)
    const hand = file.startsWith("docs/") && !file.startsWith("docs/reference/")
    return [
      ...(hand && words > mostWords ? [`${file}: ${words} words, at most ${mostWords}: split it`] : []),
      ...(reached.has(file) ? [] : [`${file}: no link leads to it`]),
      ...([...links.get(file)!].some((linked) => linked !== file && texts.has(linked))
        ? []
        : [`${file}: links to no page`])
    ]
  }).flat()
}

/** The same for the Markdown files of a repository. */
export const pageViolations = (root: string): Array<string> =>
  pageFaults(new Map(markdownFiles(root).map((file) => [file, readFileSync(path.join(root, file), "utf8")])))
