/**
 * Fenced blocks of a Markdown text.
 */

/** A block and, where a block marked `output` follows it, what it prints. */
export interface Snippet {
  readonly text: string
  readonly prints: string | undefined
}

const fence = /^```([^\n]*)\n(.*?)^```[ \t]*$/gms

/** The blocks whose info string is `info`, in order. Throws where there is none: a test would find nothing to test. */
export const snippetsOf = (markdown: string, info: string): ReadonlyArray<Snippet> => {
  const blocks = [...markdown.matchAll(fence)].map(([, info = "", text = ""]) => ({ info: info.trim(), text }))
  const found = blocks.flatMap((block, i) => {
    if (block.info !== info) return []
    const next = blocks[i + 1]
    return [{ text: block.text, prints: next?.info === "output" ? next.text : undefined }]
  })
  if (found.length === 0) throw new Error(`no block is marked ${info}`)
  return found
}
