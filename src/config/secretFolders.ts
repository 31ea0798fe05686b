/**
 * The folders whose files references may name. Apart from the other references, which the console reads too.
 */
import path from "node:path"

/** The variable that names the folders whose files references may name. */
export const secretFoldersVariable = "GATEWAY_SECRET_DIRS"

/** Reads the folders of a list, which commas separate; `undefined` for a path that is not absolute. */
export const parseSecretFolders = (text: string): ReadonlyArray<string> | undefined => {
  const folders = text.split(",").map((folder) => folder.trim()).filter((folder) => folder !== "")
  return folders.every((folder) => path.isAbsolute(folder)) ? folders : undefined
}
