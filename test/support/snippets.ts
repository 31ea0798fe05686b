/**
 * Fenced blocks of a Markdown text.
 */

/** A block and, where a block marked `output` follows it, what it prints. */
export interface Snippet {
  readonly text: string
  readonly prints: string | undefined
}

const fence = /^```([^\n]*)\n(.*?)^```[ \t]*$/gms

/** The blocks whose info string is `info`, in order. */
export const snippetsOf = (markdown: string, info: string): ReadonlyArray<Snippet> => {
  const blocks = [...markdown.matchAll(fence)].map(([, info = "", text = ""]) => ({ info: info.trim(), text }))
  return blocks.flatMap((block, i) => {
    if (block.info !== info) return []
    const next = blocks[i + 1]
    return [{ text: block.text, prints: next?.info === "output" ? next.text : undefined }]
  })
}
