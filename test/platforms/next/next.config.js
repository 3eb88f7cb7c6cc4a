const { BODY_LIMIT } = process.env;

export default {
  // Not the folder of the next package-lock.json further out.
  turbopack: { root: import.meta.dirname },
  ...(BODY_LIMIT && { experimental: { proxyClientMaxBodySize: Number(BODY_LIMIT) } }),
};
