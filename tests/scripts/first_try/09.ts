const cities = ['New York', 'Chicago', 'Los Angeles'] as const;
const weather = await Promise.all(cities.map(async (city) => {
  const w = await mcp.everything['get-structured-content']({ location: city });
  return { city, temperature: w.temperature };
}));
return weather.sort((a, b) => b.temperature - a.temperature)[0];
