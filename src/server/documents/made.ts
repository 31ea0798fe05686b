/** Documents that a request makes: their bytes in every encoding. */
import { promisify } from "node:util"
import { brotliCompress, constants, gzip } from "node:zlib"
import { type SentFile, sentFile } from "../sentFile.ts"

const [toBrotli, toGzip] = [promisify(brotliCompress), promisify(gzip)]

/** The result is half as large again as with the best quality, which takes seconds. */
const brotliQuality = { params: { [constants.BROTLI_PARAM_QUALITY]: 6 } }

/** A document, and its headers besides those of its content. */
export interface Made {
  readonly file: SentFile
  readonly headers: Readonly<Record<string, string>>
}

/** Compresses a document. Its clients revalidate their copies. */
export const made = async (text: string, contentType: string, headers: Made["headers"]): Promise<Made> => {
  const plain = Buffer.from(text)
  const [br, gz] = await Promise.all([toBrotli(plain, brotliQuality), toGzip(plain)])
  // The address is constant but the content is not, so clients must revalidate.
  return { file: sentFile({ plain, br, gz, contentType }), headers: { "cache-control": "no-cache", ...headers } }
}
