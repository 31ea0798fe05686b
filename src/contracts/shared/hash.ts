/** Hashes by which long names stay distinct. They are no protection against someone who looks for two texts of one hash. */

/** FNV-1a from a beginning, in 8 hex digits. */
export const hash = (text: string, from = 0x811c9dc5): string => {
  let value = from
  for (let i = 0; i < text.length; i++) value = Math.imul(value ^ text.charCodeAt(i), 0x01000193)
  return (value >>> 0).toString(16).padStart(8, "0")
}

/** Two of them, in 16 hex digits: the second begins where the first has ended, so that both depend on each character in their own way. */
export const longHash = (text: string): string => {
  const first = hash(text)
  return first + hash(text, Math.imul(Number.parseInt(first, 16), 0x9e3779b1))
}
