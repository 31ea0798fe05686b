/**
 * English texts of the pages about the configuration: settings, samples, import and export, about.
 */
import type { Count } from "./count.ts"

export const configurationTexts = (_count: Count) => ({})
