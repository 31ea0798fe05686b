/**
 * Texts in pieces that the store takes and gives one by one, so that no single command keeps it from other work.
 */

/** Bytes of a piece at most, before it is sealed. */
export const pieceBytes = 256 * 1024

const encoder = new TextEncoder()
const scratch = new Uint8Array(pieceBytes)

/** The pieces of a text in order; a character is never cut. */
export function* piecesOf(text: string): Generator<string, void> {
  for (let from = 0; from < text.length;) {
    const { read } = encoder.encodeInto(text.slice(from, from + pieceBytes), scratch)
    yield text.slice(from, from + read)
    from += read
  }
}
