// The rule that a translation has the same keys as the English file.
export type SameKeys<Texts> = { readonly [Key in keyof Texts]: string };
